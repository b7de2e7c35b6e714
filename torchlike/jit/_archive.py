"""Archives of torch.jit.save: a pickled module, its tensors, and the text of its classes, which `_machine.py` runs."""
from __future__ import annotations

import io
import pickle
import sys
from typing import IO, Any

from .. import serialization
from .._serialization.archive import ArchiveReader
from .._serialization.locations import placement
from .._serialization.names import resolve_weights_only
from .._serialization.records import StorageRecord, is_storage
from .._serialization.tensors import LoadedStorage, StorageOfFile
from .._serialization.unpickler import Resolved, Unpickler
from ._code import Code, RecursiveScriptModule


def _restored(value: Any, *type_name: str) -> Any:
    """What is written with its type beside it: lists and dictionaries."""
    return value


_LISTS = ("restore_type_tag", "build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")


class _Machine(Unpickler):
    """TorchScript calls an enumeration's class with its value alone, where a pickle has a tuple of arguments."""

    def _reduce(self) -> None:
        if not isinstance(self._stack[-1], tuple):
            self._stack[-1] = (self._stack[-1],)
        super()._reduce()


class _Archive:
    """An archive being read, and where its tensors go."""

    def __init__(self, records: ArchiveReader, name: str, map_location: Any) -> None:
        self.records, self.name, self.place = records, name, placement(map_location)
        self.swap = serialization._file_byteorder(records, name) != sys.byteorder
        texts = {x: records.read(x).decode() for x in records.names() if x.startswith("code/") and x.endswith(".py")}
        self.code = Code(texts, int(records.read("version")) if "version" in records else 3)

    def unpickled(self, record: str) -> Any:
        """The object of `record.pkl`, whose tensors' data lie in `record/`."""
        loaded: dict[str, StorageOfFile] = {}

        def persistent_load(pid: Any) -> StorageOfFile:
            if not is_storage(pid) or len(pid) != 5:
                raise pickle.UnpicklingError(f"Unknown persistent id {pid!r}")
            _, kind, key, location, numel = pid
            if key not in loaded:
                data = self.records.read_array(f"{record}/{key}")
                if data.nbytes != numel * kind.itemsize:
                    raise RuntimeError(f"{self.name} is corrupted: storage {key} has {data.nbytes} bytes, not {numel} times {kind.itemsize}")
                loaded[key] = StorageOfFile(LoadedStorage(StorageRecord(kind, key, location, data.nbytes, data), self.swap, self.place))
            return loaded[key]
        return _Machine(io.BytesIO(self.records.read(f"{record}.pkl")), self._resolve, persistent_load).load()

    def _resolve(self, module: str, name: str) -> Resolved:
        if module == "torch.jit._pickle" and name in _LISTS:
            return Resolved(_restored, call=_restored)
        if module.partition(".")[0] != "__torch__":
            return resolve_weights_only(module, name)
        found = self.code.find(f"{module}.{name}")
        if not isinstance(found, type):
            raise pickle.UnpicklingError(f"{module}.{name} is no class")
        return Resolved(found, call=found, new=lambda: found.__new__(found), state="method")


def read(stream: IO[bytes], name: str, map_location: Any, extra_files: dict[str, Any] | None) -> RecursiveScriptModule:
    """The module of an archive; `extra_files`' records are filled in."""
    records = ArchiveReader(stream, name)
    archive = _Archive(records, name, map_location)
    archive.code.constants = archive.unpickled("constants")
    made = archive.unpickled("data")
    for extra in extra_files or ():
        if f"extra/{extra}" in records:
            extra_files[extra] = records.read(f"extra/{extra}")
    archive.code.finish()
    if not isinstance(made, RecursiveScriptModule):
        raise RuntimeError(f"{name}: a TorchScript archive holds a module, not {type(made).__name__}")
    return made
