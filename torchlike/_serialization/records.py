"""What a checkpoint holds besides its pickle: storages, as bytes with a type name, a key and a device tag."""

import dataclasses
from typing import Any

import numpy as np

# {torch's storage class: (dtype, bytes per element)}; other dtypes are kept in an UntypedStorage
_TYPED = {
    "BoolStorage": ("bool", 1),
    "ByteStorage": ("uint8", 1),
    "CharStorage": ("int8", 1),
    "ShortStorage": ("int16", 2),
    "IntStorage": ("int32", 4),
    "LongStorage": ("int64", 8),
    "HalfStorage": ("float16", 2),
    "BFloat16Storage": ("bfloat16", 2),
    "FloatStorage": ("float32", 4),
    "DoubleStorage": ("float64", 8),
    "ComplexFloatStorage": ("complex64", 8),
    "ComplexDoubleStorage": ("complex128", 16),
    "QInt8Storage": ("qint8", 1),
    "QUInt8Storage": ("quint8", 1),
    "QInt32Storage": ("qint32", 4),
}


@dataclasses.dataclass(frozen=True)
class StorageType:
    """What a storage class of torch (``torch.FloatStorage``) stands for in a pickle."""

    name: str
    dtype: str | None
    itemsize: int


UNTYPED = StorageType("UntypedStorage", None, 1)
STORAGE_TYPES = {name: StorageType(name, *of) for name, of in _TYPED.items()}
_BY_DTYPE = {kind.dtype: kind for kind in STORAGE_TYPES.values()}


def storage_type(dtype: str) -> StorageType:
    """The storage class that torch keeps elements of ``dtype`` in."""
    return _BY_DTYPE.get(dtype, UNTYPED)


@dataclasses.dataclass(eq=False)
class StorageRecord:
    """One storage of a file. ``data`` is its memory as uint8; ``base`` is the tensor that owns it once it is loaded."""

    type: StorageType
    key: str
    location: str
    nbytes: int
    data: np.ndarray | None = None
    base: Any = None

    @property
    def numel(self) -> int:
        return self.nbytes // self.type.itemsize


def decoded(pid: Any) -> Any:
    """A persistent id whose strings Python 2 wrote, read by `encoding="bytes"`."""
    if isinstance(pid, bytes):
        return pid.decode("ascii", "replace")
    return tuple(map(decoded, pid)) if isinstance(pid, tuple) else pid


def is_storage(pid: Any) -> bool:
    """Whether a persistent id is ("storage", type, key, location, number of elements), perhaps with a view (legacy)."""
    return (
        isinstance(pid, tuple)
        and len(pid) in (5, 6)
        and pid[0] == "storage"
        and isinstance(pid[1], StorageType)
        and isinstance(pid[2], str)
        and isinstance(pid[3], str)
        and isinstance(pid[4], int)
    )


def swap_bytes(data: np.ndarray, dtype: str, itemsize: int) -> np.ndarray:
    """``data`` (uint8) with the bytes of every number reversed; a complex number is two numbers."""
    width = itemsize // 2 if dtype.startswith("complex") else itemsize
    return np.ascontiguousarray(data.reshape(-1, width)[:, ::-1]).reshape(-1)


def check_bounds(size: tuple[int, ...], stride: tuple[int, ...], offset: int, itemsize: int, nbytes: int) -> None:
    """RuntimeError unless all elements of a strided tensor lie inside a storage of ``nbytes``."""
    if len(size) != len(stride) or offset < 0 or any(n < 0 for n in (*size, *stride)):
        raise RuntimeError(f"invalid tensor geometry: size {size}, stride {stride}, storage offset {offset}")
    if 0 in size:
        return
    needed = (offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))) * itemsize
    if needed > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {needed} are out of bounds for storage of size {nbytes}"
        )
