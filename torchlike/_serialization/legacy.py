"""torch's format before 1.6: pickles in a row (magic number, version, machine, object, keys), then the storages."""

import pickle
import struct
import sys
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from . import names
from .archive import read_bytes
from .records import StorageRecord, StorageType, decoded, is_storage
from .unpickler import Resolved, Skimmer, Unpickler

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
_TAR_MAGIC_AT = 257


def read_header(stream: IO[bytes], file_name: str) -> dict[str, Any]:
    """Read past magic number and version: the facts about the machine that wrote the file.

    A foreign file is an UnpicklingError that names it, an empty one an EOFError.
    """
    here = stream.tell()
    start = stream.read(_TAR_MAGIC_AT + 5)
    stream.seek(here)
    if not start:
        raise EOFError(f"Ran out of input: {file_name} is empty")
    if start[_TAR_MAGIC_AT:] == b"ustar":
        raise RuntimeError(f"{file_name} is a tar archive: no checkpoint, or one of torch < 0.1.10, which is not read")
    try:
        magic = _plain(stream)
    except (pickle.UnpicklingError, EOFError):
        magic = None
    if magic != MAGIC:
        raise pickle.UnpicklingError(f"Invalid magic number; corrupt file? {file_name} is no checkpoint of torch.save")
    version = _plain(stream)
    if version != VERSION:
        raise RuntimeError(f"Invalid protocol version: {version} in {file_name}")
    machine = _plain(stream)
    if not isinstance(machine, dict):
        raise pickle.UnpicklingError("the description of the machine is no dict")
    return machine


def _plain(stream: IO[bytes]) -> Any:
    """A pickle of numbers, strings and containers only."""

    def refuse(*of: Any) -> Resolved:
        raise pickle.UnpicklingError(f"unexpected {of} outside of the object")

    return Unpickler(stream, refuse, refuse).load()


def read(
    stream: IO[bytes],
    resolve: Callable[[str, str], Resolved],
    storage: Callable[[StorageRecord, bool], Any],
    encoding: str,
    errors: str,
    file_name: str,
) -> Any:
    """The object of a legacy file; ``storage(record, swap)`` makes a storage of it.

    The storages lie behind the pickle that uses them, so this skims the pickle, reads them, and comes back.
    """
    swap = read_header(stream, file_name).get("little_endian", True) != (sys.byteorder == "little")
    start = stream.tell()
    skimmer = Skimmer(stream, _STORAGE_NAMES, encoding, errors)
    skimmer.load()
    records = {}
    for pid in skimmer.persistent_ids:
        if not _is_class(decoded(pid)):
            record = _record(pid)
            records[record.key] = record
    keys = _plain(stream)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise pickle.UnpicklingError("the keys of the storages are no list of str")
    for key in keys:
        _read_storage(stream, records, key, swap, file_name)
    end = stream.tell()
    stream.seek(start)
    loaded: dict[str, Any] = {}

    def load(pid: Any) -> Any:
        pid = decoded(pid)
        if _is_class(pid):
            return pid[1]
        key = pid[2]
        if records[key].data is None:
            raise RuntimeError(f"{file_name} is truncated or corrupted: storage {key} is missing")
        if not records[key].nbytes:  # an empty storage may have tensors of several dtypes
            return storage(_record(pid, np.zeros(0, np.uint8)), swap)
        if key not in loaded:
            loaded[key] = storage(records[key], swap)
        if len(pid) < 6 or pid[5] is None:
            return loaded[key]
        name, start, size = pid[5]
        if name not in loaded:
            loaded[name] = loaded[key].part(start, size)
        return loaded[name]

    result = Unpickler(stream, resolve, load, encoding, errors).load()
    stream.seek(end)
    return result


_STORAGE_NAMES = {full: known.value for full, known in names.TABLE.items() if isinstance(known.value, StorageType)}


def _is_class(pid: Any) -> bool:
    """Module classes were stored with their source code, for comparison."""
    return isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module"


def _record(pid: Any, data: np.ndarray | None = None) -> StorageRecord:
    pid = decoded(pid)
    if not is_storage(pid):
        raise pickle.UnpicklingError(f"Unknown persistent id {pid!r}")
    _, kind, key, location, numel, *view = pid
    part = view[0] if view else None  # torch < 0.4 had storages that were parts of others: (key, first element, how many)
    if part is not None and not (isinstance(part, tuple) and len(part) == 3 and isinstance(part[0], str)
                                 and all(isinstance(n, int) and 0 <= n for n in part[1:]) and part[1] + part[2] <= numel):
        raise pickle.UnpicklingError(f"Unknown part of a storage {part!r}")
    return StorageRecord(kind, key, location, numel * kind.itemsize, data)


def _read_storage(stream: IO[bytes], records: dict[str, StorageRecord], key: str, swap: bool, file_name: str) -> None:
    header = stream.read(8)
    if len(header) != 8 or key not in records:
        raise RuntimeError(f"{file_name} is truncated or corrupted: storage {key} is missing")
    record = records[key]
    numel = struct.unpack(">q" if swap else "<q", header)[0]
    try:
        if numel != record.numel:
            raise EOFError(f"{numel} elements are written")
        record.data = read_bytes(stream, record.nbytes)
    except EOFError as error:
        raise RuntimeError(f"{file_name} is truncated or corrupted: storage {key} should have {record.numel} elements ({error})") from None


def write(stream: IO[bytes], pickled: bytes, storages: list[tuple[StorageRecord, Callable[[], np.ndarray]]]) -> None:
    """Header, the pickled object, the keys of its storages, and their bytes."""
    sizes = {"short": struct.calcsize("=h"), "int": struct.calcsize("=i"), "long": struct.calcsize("=l")}
    machine = {"protocol_version": VERSION, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    for part in (MAGIC, VERSION, machine):
        stream.write(pickle.dumps(part, 2))
    stream.write(pickled)
    stream.write(pickle.dumps([record.key for record, _ in storages], 2))
    for record, data in storages:
        stream.write(struct.pack("=q", record.numel))
        stream.write(memoryview(data()).cast("B"))
