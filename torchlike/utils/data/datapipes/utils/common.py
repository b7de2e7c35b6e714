"""What programs ask of pipes that read files: names, streams that close themselves, and checks."""
from __future__ import annotations

import fnmatch
import io
from collections.abc import Iterable, Iterator
from typing import Any

from .._common import StreamWrapper
from .._common import check_arguments as validate_input_col

__all__ = ["StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root", "match_masks", "validate_input_col",
           "validate_pathname_binary_tuple"]


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a name fits one of the masks (`"*.txt"`), or there are none."""
    return not masks or any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False,
                                 non_deterministic: bool = False) -> Iterator[str]:
    """The paths of the files in a folder that fit the masks."""
    from ..iter.files import FileListerIterDataPipe
    yield from FileListerIterDataPipe(root, masks, recursive=recursive, abspath=abspath, non_deterministic=non_deterministic)


def get_file_binaries_from_pathnames(pathnames: Iterable[str], mode: str, encoding: str | None = None) -> Iterator[tuple[str, StreamWrapper]]:
    """(path, open file) of each path, read as `"b"` or `"t"`, or opened as another mode says."""
    for path in [pathnames] if isinstance(pathnames, str) else pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        yield path, StreamWrapper(open(path, f"r{mode}" if mode in ("b", "t") else mode, encoding=encoding))


def validate_pathname_binary_tuple(data: tuple[str, Any]) -> None:
    """TypeError for what is no pair of a path and a binary stream."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not isinstance(data[1], (io.IOBase, StreamWrapper)):
        raise TypeError(f"binary stream within the tuple should have IOBase orits subclasses as type, but it is type {type(data[1])}")
