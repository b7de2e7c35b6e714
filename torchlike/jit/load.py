"""torch.jit.load. What reads and runs an archive is imported when a program has one."""
from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

from ._deprecated import deprecated

if TYPE_CHECKING:
    from ._code import RecursiveScriptModule


def load(f: str | os.PathLike[str] | IO[bytes], map_location: Any = None, _extra_files: dict[str, Any] | None = None,
         _restore_shapes: bool = False) -> RecursiveScriptModule:
    """The module that PyTorch's torch.jit.save wrote.

    Nothing in the file is run as Python: its text is walked through, and calls TorchScript's operators and its own functions only.
    `_extra_files`: names of further records, whose contents are filled in.
    """
    deprecated("load", "`torch.export`")
    from .. import serialization
    from ._archive import read
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {os.fspath(f)} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {os.fspath(f)} is a directory")
    with serialization._readable(f) as (stream, name):
        return read(stream, name, map_location, _extra_files)
