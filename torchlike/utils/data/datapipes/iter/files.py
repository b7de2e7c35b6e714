"""Files: their names, opened, and what is in them."""
from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._common import StreamWrapper
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import match_masks
from .utils import IterableWrapperIterDataPipe

__all__ = ["FileListerIterDataPipe", "FileOpenerIterDataPipe", "StreamReaderIterDataPipe"]


class _OfToldLength(IterDataPipe):
    length: int

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("list_files")
class FileListerIterDataPipe(_OfToldLength):
    """The paths of the files in folders, sorted in each unless `non_deterministic`; of those that a mask fits, where there are masks."""

    def __init__(self, root: str | Sequence[str] | IterDataPipe = ".", masks: str | list[str] = "", *, recursive: bool = False, abspath: bool = False,
                 non_deterministic: bool = False, length: int = -1) -> None:
        root = [root] if isinstance(root, str) else root
        self.datapipe = root if isinstance(root, IterDataPipe) else IterableWrapperIterDataPipe(root)
        self.masks, self.recursive, self.abspath, self.non_deterministic, self.length = masks, recursive, abspath, non_deterministic, length

    def _wanted(self, name: str) -> bool:
        return match_masks(name, self.masks)

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            if os.path.isfile(root):
                if self._wanted(os.path.basename(root)):
                    yield os.path.abspath(root) if self.abspath else root
                continue
            for folder, folders, files in os.walk(root, onerror=_warn):
                folder = os.path.abspath(folder) if self.abspath else folder
                yield from (os.path.join(folder, f) for f in (files if self.non_deterministic else sorted(files)) if self._wanted(f))
                if not self.recursive:
                    break
                if not self.non_deterministic:
                    folders.sort()


def _warn(error: OSError) -> None:
    warnings.warn(error.filename + " : " + error.strerror, stacklevel=2)
    raise error


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(_OfToldLength):
    """(path, open file) of each path. A file is closed when nobody holds it any more."""

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path in self.datapipe:
            if not isinstance(path, str):
                raise TypeError(f"Expected string type for pathname, but got {type(path)}")
            yield path, StreamWrapper(open(path, "r" + self.mode.removeprefix("r"), encoding=self.encoding))


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(path, what is in the file), whole or in pieces of `chunk`."""

    def __init__(self, datapipe: IterDataPipe, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        for path, stream in self.datapipe:
            while data := stream.read(self.chunk):
                yield path, data
            stream.close()
