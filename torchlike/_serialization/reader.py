"""torch.PyTorchFileReader: the records of a saved file, one by one."""
from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from .._core import dtype as dtypes
from .._tensor import Tensor, as_tensor_value
from .archive import ArchiveReader


class PyTorchFileReader:
    """Opens a file that torch.save wrote, given by its path or as a stream."""

    __module__ = "torch"

    def __init__(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        if isinstance(file, (str, os.PathLike)):
            try:
                file = open(file, "rb")  # noqa: SIM115  (lives as long as the reader)
            except OSError as error:
                raise RuntimeError(f"open file failed because of errno {error.errno} on fopen: {error.strerror}, file path: {os.fspath(file)}") from None
        self._archive = ArchiveReader(file, getattr(file, "name", "archive"))

    def get_all_records(self) -> list[str]:
        """Their names, in the order of the file."""
        return self._archive.names()

    def has_record(self, name: str) -> bool:
        """Whether there is such a record."""
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """Its bytes."""
        return self._archive.read(name)

    def get_record_size(self, name: str) -> int:
        """Its length in bytes."""
        return len(self._archive.read(name))

    def get_record_offset(self, name: str) -> int:
        """Where its bytes begin in the file."""
        return self._archive.offset(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """A tensor without elements whose storage has the record's first `numel` elements (bytes, for a type of storage)."""
        kind = dtype if isinstance(dtype, dtypes.dtype) else dtypes.uint8
        data = np.frombuffer(self._archive.read(name), kind.np, numel).copy()
        return as_tensor_value(data)[:0]

    def serialization_id(self) -> str:
        """What tells this save from others."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""
