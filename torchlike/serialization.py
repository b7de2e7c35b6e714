"""``save`` and ``load``: torch's checkpoint files, written and read without torch."""

import contextlib
import enum
import io
import mmap as mmap_
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeAlias

import numpy as np

from ._core.device import device
from ._core.history import warn
from ._serialization import legacy
from ._serialization.archive import ArchiveReader, ArchiveWriter
from ._serialization.atomic import atomic_write
from ._serialization.locations import _restore as restored
from ._serialization.locations import placement, register_package, tag
from ._serialization.names import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    resolve_class,
    resolve_weights_only,
    safe_globals,
)
from ._serialization.options import SourceChangeWarning, get_crc32_options, set_crc32_options, settings, skip_data, skips_data
from ._serialization.pickler import pickler_of
from ._serialization.reader import PyTorchFileReader
from ._serialization.records import StorageRecord, decoded, is_storage
from ._serialization.tensors import LoadedStorage, StorageOfFile, TensorSaver, _get_layout  # noqa: F401  (pickles name the last)
from ._serialization.unpickler import Skimmer, Unpickler
from .torch_version import TorchVersion
from .types import Storage

__all__ = [
    "DEFAULT_PROTOCOL",
    "LoadEndianness",
    "SourceChangeWarning",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
_ZIP_MAGIC = b"PK\x03\x04"
_FORCE_ON, _FORCE_OFF = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
_FileLike = str | os.PathLike | IO[bytes]
MAP_LOCATION: TypeAlias = Callable[[Storage, str], Storage] | device | str | dict[str, str] | None


class LoadEndianness(enum.Enum):
    """The byte order assumed for files that do not record theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for files without a record of it; None means little."""
    return settings().load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set :func:`get_default_load_endianness`."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    settings().load.endianness = endianness


def get_default_mmap_options() -> int | None:
    """How `load(mmap=True)` maps files: `mmap.MAP_PRIVATE`, so that no write reaches the file."""
    return settings().load.mmap_flags


class set_default_mmap_options:
    """Set :func:`get_default_mmap_options`, for a block where it is a context. ValueError for what is neither `mmap.MAP_PRIVATE` nor `mmap.MAP_SHARED`,
    NotImplementedError for the latter: writes to tensors make new values, and never reach a file."""

    def __init__(self, flags: int) -> None:
        if flags not in (mmap_.MAP_PRIVATE, mmap_.MAP_SHARED):
            raise ValueError(f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}")
        if flags == mmap_.MAP_SHARED:
            raise NotImplementedError("torchlike: mmap.MAP_SHARED is not supported: writes to tensors make new values, and never reach a file")
        self.prev, settings().load.mmap_flags = settings().load.mmap_flags, flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        settings().load.mmap_flags = self.prev


# -- save -------------------------------------------------------------------------------------------------------------


def save(
    obj: object,
    f: _FileLike,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write ``obj`` to a path or binary file object in torch's format; real torch loads it, weights_only=True included.

    What is not torchlike's is written as ``pickle_module.Pickler`` writes it (``cloudpickle``: functions by their code, which :func:`load`
    does not run). Tensors that share memory share it again after loading; what is written is the whole storage of each. A path is
    written atomically: into a temporary file beside it that replaces it at the end, so that a killed process leaves the
    old file or the new one. RuntimeError if the folder does not exist, AttributeError if ``f`` cannot be written to.
    """
    _check_dill(pickle_module)
    if skips_data() and not _use_new_zipfile_serialization:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    with _writable(f) as (stream, name):  # before anything is pickled: that takes a while, and whether there is such a folder does not
        saver = TensorSaver(legacy=not _use_new_zipfile_serialization)
        pickled = io.BytesIO()
        pickler_of(pickle_module)(pickled, pickle_protocol, saver.persistent_id, saver.reduce).dump(obj)
        if not _use_new_zipfile_serialization:
            legacy.write(stream, pickled.getvalue(), saver.storages())
            return
        archive = ArchiveWriter(stream, name)
        archive.write_header(pickled.getvalue(), byteorder=not _disable_byteorder_record)
        for record, data in saver.storages():
            if skips_data():
                archive.write(f"data/{record.key}", np.zeros(record.nbytes, np.uint8), checksum=False)
            else:
                archive.write(f"data/{record.key}", data())
        archive.close()


@contextlib.contextmanager
def _writable(f: _FileLike) -> Iterator[tuple[IO[bytes], str]]:
    """A stream to write to, and the name of the archive's folder: the file's stem, as in torch."""
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
        yield f, "archive"
        if hasattr(f, "flush"):  # somebody may read the file by its name now
            f.flush()
        return
    path = os.fspath(f)
    parent = os.path.dirname(path) or "."
    if not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    if os.path.isdir(path):
        raise RuntimeError(f"open file failed with strerror: Is a directory: {path}")
    stem = os.path.basename(path).rpartition(".")[0] or os.path.basename(path)
    with atomic_write(path) as stream:
        yield stream, stem if path.isascii() else "archive"


def _check_dill(pickle_module: Any) -> None:
    if pickle_module is not None and pickle_module.__name__ == "dill" and not TorchVersion(pickle_module.__version__) >= (0, 3, 1):
        raise ValueError(f"'torch' supports dill >= 0.3.1, but you have dill {pickle_module.__version__}. Please upgrade dill or switch to 'pickle'")


# -- load -------------------------------------------------------------------------------------------------------------


def load(
    f: _FileLike,
    map_location: Callable[[Any, str], Any] | device | str | dict[str, str] | None = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what :func:`save` of torchlike or torch wrote (zip or the older format) from a path or seekable file object.

    No code from the file runs, whatever it asks for:

    - ``weights_only=True`` (the default) builds tensors, containers, numbers, sizes, devices and dtypes, and calls what
      :func:`add_safe_globals` registered; any other name is an ``UnpicklingError``.
    - ``weights_only=False`` also builds dates, paths, NumPy arrays, ... and instances of classes that are **already
      imported**: without calling their constructor, and (except in torchlike's classes and subclasses of them, such as
      your ``nn.Module``) without running any method. Functions are never called, and classes of the standard library
      such as ``subprocess.Popen`` are refused. This is stricter than torch, which runs anything here.

    ``map_location`` (a device, ``{tag: tag}``, or ``function(storage, tag)``) says where storages go; ``mmap=True``
    maps the file's pages instead of reading it. A truncated, foreign or empty file is a RuntimeError, EOFError or
    UnpicklingError that names it.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    if pickle_module is not None:
        if weights_only:
            raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
        _check_dill(pickle_module)
        if pickle_module is not pickle:
            raise RuntimeError(f"pickle_module={pickle_module.__name__} is not supported: torchlike reads the pickle of a checkpoint itself, so that loading "
                               "runs no code of the file. Leave it out.")
    encoding, errors = pickle_load_args.pop("encoding", "utf-8"), pickle_load_args.pop("errors", "strict")
    if pickle_load_args:
        raise TypeError(f"load() got unexpected keyword arguments {sorted(pickle_load_args)}")
    if mmap is None:
        mmap = settings().load.mmap
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    place = placement(map_location)
    resolve = resolve_weights_only if weights_only else resolve_class

    def make_storage(record: StorageRecord, swap: bool) -> StorageOfFile:
        return StorageOfFile(LoadedStorage(record, swap, place))

    with _readable(f) as (stream, name):
        try:
            if _is_zip(stream):
                archive = ArchiveReader(stream, name, os.fspath(f) if mmap else None)
                if "constants.pkl" in archive:
                    return _load_script(stream, name, map_location, weights_only)
                return _load_zip(archive, name, resolve, make_storage, encoding, errors)
            if mmap:
                raise RuntimeError(
                    "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), "
                    f"please torch.save your checkpoint with this option in order to use mmap. ({name})"
                )
            return legacy.read(stream, resolve, make_storage, encoding, errors, name)
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(_refusal(error, name, weights_only)) from None
        except EOFError as error:
            raise EOFError(str(error) if name in str(error) else f"{error}: {name} is truncated or empty") from None


def _weights_only(asked: bool | None, pickle_module: Any) -> bool:
    """What `weights_only` means under torch's environment variables."""
    on, off = (os.environ.get(name, "0").lower() in ("1", "y", "yes", "true") for name in (_FORCE_ON, _FORCE_OFF))
    if on and off:
        raise RuntimeError(f"Only one of `{_FORCE_ON}` or `{_FORCE_OFF}` should be set, but both were set.")
    if on:
        return True
    if asked is not None:
        return asked
    if off:
        warn(f"Environment variable {_FORCE_OFF} detected, since the`weights_only` argument was not explicitly passed to `torch.load`, forcing "
             "weights_only=False.")
        return False
    return pickle_module is None


def _refusal(error: pickle.UnpicklingError, name: str, weights_only: bool) -> str:
    if not weights_only:
        return f"{name}: {error}"
    return (
        f"Weights only load failed for {name}.\n\tWeightsUnpickler error: {error}\n"
        "`weights_only=False` also builds instances of classes already imported; see the docstring of torch.load."
    )


def _load_script(stream: IO[bytes], name: str, map_location: Any, weights_only: bool) -> Any:
    """A program that torch.jit.save wrote, where more than weights is wanted."""
    if weights_only:
        raise RuntimeError(f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: {name} holds a program. "
                           "torch.jit.load reads it")
    from .jit.load import load as load_script
    warnings.warn("'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call "
                  "'torch.jit.load' directly to silence this warning)", UserWarning, stacklevel=3)
    stream.seek(0)
    return load_script(stream, map_location)


def _load_zip(
    archive: ArchiveReader,
    name: str,
    resolve: Callable,
    make_storage: Callable[[StorageRecord, bool], StorageOfFile],
    encoding: str,
    errors: str,
) -> Any:
    swap = _file_byteorder(archive, name) != sys.byteorder
    loaded: dict[str | tuple, StorageOfFile] = {}

    def persistent_load(pid: Any) -> StorageOfFile:
        pid = decoded(pid)
        if not is_storage(pid) or len(pid) != 5:
            raise pickle.UnpicklingError(f"Unknown persistent id {pid!r}")
        _, kind, key, location, numel = pid
        which = key if numel else (key, kind)  # an empty storage may have tensors of several dtypes
        if which not in loaded:
            data = archive.read_array(f"data/{key}")
            if data.nbytes != numel * kind.itemsize:
                raise RuntimeError(
                    f"{name} is corrupted: storage {key} has {data.nbytes} bytes, not {numel} times {kind.itemsize}"
                )
            loaded[which] = make_storage(StorageRecord(kind, key, location, data.nbytes, data), swap)
        return loaded[which]

    return Unpickler(io.BytesIO(archive.read("data.pkl")), resolve, persistent_load, encoding, errors).load()


def _file_byteorder(archive: ArchiveReader, name: str) -> str:
    if "byteorder" in archive:
        order = archive.read("byteorder").decode("ascii", "replace")
        if order not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {order} in {name}")
        return order
    assumed = {LoadEndianness.BIG: "big", LoadEndianness.NATIVE: sys.byteorder}
    return assumed.get(get_default_load_endianness(), "little")


def location_tag(storage: Any) -> str:
    """What a file says of where a storage lies: "cpu", "cuda:0"."""
    return tag(storage)


def normalize_storage_type(storage_type: type) -> type:
    """The class of torch that has the name of a storage's class."""
    return getattr(sys.modules[__package__], storage_type.__name__)


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage on the device that a tag names."""
    where = restored(storage, location)
    return storage if where == storage.device else storage.to(device=where)


def get_unsafe_globals_in_checkpoint(f: _FileLike) -> list[str]:
    """The names in a (zip) checkpoint that ``load(f, weights_only=True)`` would refuse, as "module.name"."""
    with _readable(f) as (stream, name):
        if not _is_zip(stream):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        skimmer = Skimmer(io.BytesIO(ArchiveReader(stream, name).read("data.pkl")), {})
        skimmer.load()
    return [full for full in skimmer.names if not _is_allowed(full)]


def _is_allowed(full: str) -> bool:
    module, _, name = full.rpartition(".")
    try:
        resolve_weights_only(module, name)
    except pickle.UnpicklingError:
        return False
    return True


@contextlib.contextmanager
def _readable(f: _FileLike) -> Iterator[tuple[IO[bytes], str]]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as stream:
            yield stream, os.fspath(f)
        return
    for method in ("seek", "tell", "read"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    yield f if hasattr(f, "seekable") else _Seekable(f), str(getattr(f, "name", f"<{type(f).__name__}>"))


class _Seekable:
    """A file object with what torch asks of one, and the word for it that `zipfile` asks for."""

    def __init__(self, file: Any) -> None:
        self.read, self.seek, self.tell = file.read, file.seek, file.tell
        if hasattr(file, "readinto"):
            self.readinto = file.readinto

    def seekable(self) -> bool:
        return True


def _is_zip(stream: IO[bytes]) -> bool:
    here = stream.tell()
    start = stream.read(len(_ZIP_MAGIC))
    stream.seek(here)
    return start == _ZIP_MAGIC


_is_zipfile = _is_zip  # invokeai and others tell kinds of checkpoints so


@contextlib.contextmanager
def _open_file_like(name_or_buffer: _FileLike, mode: str) -> Iterator[IO[bytes]]:
    """A file that is open in a mode, by its name; an open one as it is. It is left open then, and what was written flushed."""
    if isinstance(name_or_buffer, (str, os.PathLike)):
        with open(name_or_buffer, mode) as stream:
            yield stream
        return
    if "w" not in mode and "r" not in mode:
        raise RuntimeError(f"Expected 'r' or 'w' in mode but got {mode}")
    yield name_or_buffer
    if "w" in mode:
        name_or_buffer.flush()


class _open_zipfile_reader:
    """Context manager: the records of a saved file, as a `torch.PyTorchFileReader`. Readers of checkpoints larger than memory take them one by one."""

    def __init__(self, name_or_buffer: _FileLike) -> None:
        self.file_like = PyTorchFileReader(name_or_buffer)

    def __enter__(self) -> PyTorchFileReader:
        return self.file_like

    def __exit__(self, *error: object) -> None:
        pass
