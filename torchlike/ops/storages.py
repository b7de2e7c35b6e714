"""Storages: the memory that tensors share, as the objects that `untyped_storage()` and `storage()` return.

A storage object looks at the cell its tensors share, and reading it makes bytes.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator

import numpy as np

from .._core import device as dev
from .._core import dtype as dt
from .._core.layout import contiguous, is_contiguous
from .._core.shown import Shown
from .._public import FUNCTIONS, public
from .._resize import grow
from .._shared import is_shared, share
from .._storage import LENT, Storage, in_order
from .._tensor import Tensor, as_tensor_value
from .creation import constant
from .from_data import from_data, place
from .ranges import file_of, from_file
from .tensor_types import CPU

_objects: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # cell -> its UntypedStorage, one per cell
_emptied: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # cell -> None, for storages resized to nothing


def root_tensor(cell: Storage) -> Tensor:
    """A tensor of the whole cell, outside autograd."""
    t = Tensor._of(cell.value)
    t._storage, t._seen, t._layout = cell, cell.version, cell.layout
    return t


def copied(cell: Storage, memo: dict) -> Storage:
    """A cell's copy in a deep copy: one, so that what shares memory does so there."""
    key = "torchlike", id(cell)
    if key not in memo:
        memo[key] = root_tensor(cell).clone()._ensure_storage()
    return memo[key]


def flat_tensor(cell: Storage) -> Tensor:
    """The cell's elements in the order of memory, as a vector that shares it."""
    root = root_tensor(cell)
    op, _, statics = in_order(cell, root.numel())
    return root._view(op, statics)


def _from_buffer(buffer, byte_order: str | None, count: int, offset: int, kind: dt.dtype) -> UntypedStorage:
    """A copy of a buffer's elements, which lie there in a byte order."""
    data = np.frombuffer(memoryview(buffer), np.uint8)
    if byte_order is None:
        if kind.itemsize > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    elif byte_order not in ("big", "little", "native"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    if not 0 <= offset <= data.size:
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({data.size}), but got {offset}")
    there = (data.size - offset) // kind.itemsize
    if count < 0 and (data.size - offset) % kind.itemsize:
        raise ValueError(f"buffer size ({data.size}) must be a multiple of element size ({kind.itemsize})")
    if count > there:
        raise ValueError(f"buffer has only {there} elements after offset {offset}, but specified a size of {count}")
    elements = data[offset:offset + (there if count < 0 else count) * kind.itemsize].reshape(-1, kind.itemsize)
    if byte_order not in (None, "native", sys.byteorder):
        elements = elements[:, ::-1]
    bits = np.ascontiguousarray(elements).reshape(-1)
    return UntypedStorage._of(as_tensor_value(bits != 0 if kind is dt.bool_ else bits.view(kind.np))._ensure_storage())


def _is_size(x) -> bool:
    return isinstance(x, (int, np.integer))


def _sent(flat: Tensor) -> UntypedStorage:
    """A storage that was pickled."""
    return UntypedStorage._of(flat._ensure_storage())


def _sent_typed(flat: Tensor, dtype: dt.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=_sent(flat), dtype=dtype)


class StorageBase(metaclass=Shown):
    """torch.StorageBase: what storages of bytes are instances of."""

    __module__ = "torch._C"


class UntypedStorage(StorageBase):
    """torch.UntypedStorage: the bytes that tensors share. `UntypedStorage(n)` makes n bytes, a sequence is copied."""

    __module__ = "torch.storage"

    def __init__(self, *args, device=None):
        size = args[0] if args else 0
        where = dev.resolve(device)
        made = (
            constant((int(size),), 0, dt.uint8, where) if _is_size(size) else from_data(list(size), dt.uint8, where)
        )
        self._cell = made._ensure_storage()
        _objects[self._cell] = weakref.ref(self)

    @staticmethod
    def _of(cell: Storage) -> UntypedStorage:
        found = _objects.get(cell)
        found = found and found()
        if found is None:
            found = object.__new__(UntypedStorage)
            found._cell = cell
            _objects[cell] = weakref.ref(found)
        return found

    @staticmethod
    def from_buffer(buffer, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype) -> UntypedStorage:
        """A copy of a buffer that holds elements of dtype in a byte order ("big", "little", "native")."""
        return _from_buffer(buffer, byte_order, count, offset, dtype)

    @staticmethod
    def from_file(filename, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first `nbytes` of a file, read where somebody looks; shared: writes go to the file."""
        return UntypedStorage._of(from_file(filename, shared, nbytes, dtype=dt.uint8)._ensure_storage())

    def _readable(self) -> None:
        """NotImplementedError where there is no data."""
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def _bytes(self) -> np.ndarray:
        self._readable()
        if self._cell in _emptied:
            return np.zeros(0, np.uint8)
        layout = self._cell.layout
        flat = root_tensor(self._cell) if layout is None or is_contiguous(layout) else flat_tensor(self._cell)
        return np.ascontiguousarray(flat._host_array()).reshape(-1).view(np.uint8)

    def _fill(self, data: np.ndarray) -> None:
        """Write all bytes."""
        kind = self._cell.value.aval.dtype.np
        flat_tensor(self._cell).copy_(place(np.ascontiguousarray(data).view(kind), self.device))

    def __sizeof__(self) -> int:
        return 32 + self.nbytes()  # PyTorch's object takes 32 bytes without Python's own head: torchinfo prints the sum

    def nbytes(self) -> int:
        a = self._cell.value.aval
        return 0 if self._cell in _emptied else a.numel * a.dtype.itemsize

    size = __len__ = nbytes

    def element_size(self) -> int:
        return 1

    @property
    def filename(self) -> str | None:
        """The file whose bytes these are, where writes go to it."""
        return file_of(self._cell)

    def data_ptr(self) -> int:
        return self._cell.address if self.nbytes() else 0

    @property
    def _cdata(self) -> int:
        return id(self._cell)

    @property
    def device(self):
        return self._cell.value.aval.device

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def get_device(self) -> int:
        return -1 if self.device.type == "cpu" else self.device.index

    def is_pinned(self, device=None) -> bool:
        return False

    def is_shared(self) -> bool:
        return is_shared(self._cell)

    def share_memory_(self) -> UntypedStorage:
        share(self._cell)
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device="cpu") -> UntypedStorage:
        return cls(size, device=device).share_memory_()

    def untyped(self) -> UntypedStorage:
        return self

    def __getitem__(self, i):
        self._readable()
        if isinstance(i, slice):
            if i.step not in (None, 1):
                raise RuntimeError(f"Trying to slice with a step of {i.step}, but only a step of 1 is supported")
            return UntypedStorage._of(place(self._bytes()[i], self.device)._ensure_storage())
        n = self.nbytes()
        if not -n <= i < n:
            raise IndexError(f"index {i} out of range for storage of size {n}")
        return int(self._bytes()[i])

    def __setitem__(self, i, value) -> None:
        data = self._bytes().copy()
        data[i] = value
        self._fill(data)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        return self._bytes().tolist() if self.nbytes() else []

    def new(self) -> UntypedStorage:
        return UntypedStorage(0, device=self.device)

    def type(self) -> str:
        return "torch.storage.UntypedStorage"

    def resizable(self) -> bool:
        """Whether it may grow or shrink: not where a NumPy array shares it."""
        return self._cell.host is None or self._cell.host is LENT

    def byteswap(self, dtype: dt.dtype) -> None:
        """Reverse the bytes of each element (of each part of complex ones), in place."""
        size = dtype.to_real().itemsize
        whole = self.nbytes() // size * size
        data = self._bytes().copy()
        data[:whole] = data[:whole].reshape(-1, size)[:, ::-1].reshape(-1)
        self._fill(data)

    def fill_(self, value: int) -> UntypedStorage:
        self._fill(np.full(self.nbytes(), value, np.uint8))
        return self

    def copy_(self, source, non_blocking: bool | None = None) -> UntypedStorage:
        data = source.untyped()._bytes()
        if data.size != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {data.size} bytes")
        self._fill(data)
        return self

    def clone(self) -> UntypedStorage:
        return UntypedStorage._of(root_tensor(self._cell).clone()._ensure_storage())

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def cpu(self) -> UntypedStorage:
        return (
            self if self.device.type == "cpu" else UntypedStorage._of(flat_tensor(self._cell).cpu()._ensure_storage())
        )

    def cuda(self, device=None, non_blocking: bool = False) -> UntypedStorage:
        return UntypedStorage._of(flat_tensor(self._cell).cuda(device)._ensure_storage())

    def resize_(self, size: int) -> UntypedStorage:
        """Give the memory back (size 0), take the whole of it again, zeroed, or more, with zeros behind; tensors keep their shapes."""
        a = self._cell.value.aval
        if size == 0:
            root_tensor(self._cell).zero_()
            _emptied[self._cell] = None
        elif size == a.numel * a.dtype.itemsize:
            _emptied.pop(self._cell, None)
        elif size > a.numel * a.dtype.itemsize and size % a.dtype.itemsize == 0 and self._cell not in _emptied:
            grow(self._cell, size // a.dtype.itemsize)
        else:
            raise RuntimeError(
                f"a storage of {self.nbytes()} bytes that tensors share can grow by whole elements, and be resized to 0 and back, not to {size}; "
                "use Tensor.resize_"
            )
        return self

    def __repr__(self):
        return (
            "".join(f" {b}\n" for b in self.tolist())
            + f"[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"
        )

    def __reduce__(self) -> tuple:
        return _sent, (flat_tensor(self._cell),)

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), UntypedStorage._of(copied(self._cell, memo)))


class _TypedMeta(Shown):
    """`isinstance(s, torch.FloatStorage)` goes by dtype."""

    def __instancecheck__(cls, instance) -> bool:
        wanted = cls.__dict__.get("dtype")
        return type.__instancecheck__(TypedStorage, instance) and (
            not isinstance(wanted, dt.dtype) or instance.dtype is wanted
        )


_STORED = {dt.qint8: dt.int8, dt.quint8: dt.uint8, dt.qint32: dt.int32}  # of quantized types: their integers


class TypedStorage(metaclass=_TypedMeta):
    """torch.TypedStorage: shared memory as elements of a dtype."""

    __module__ = "torch.storage"

    def __new__(
        cls, *args, wrap_storage: UntypedStorage | None = None, dtype=None, device=None, _internal: bool = False
    ):
        kind = (
            cls.__dict__.get("dtype")
            if isinstance(cls.__dict__.get("dtype"), dt.dtype)
            else dtype or dt.get_default_dtype()
        )
        where = dev.resolve(device)
        if wrap_storage is not None:
            made = wrap_storage
        elif not args or _is_size(args[0]):
            made = UntypedStorage._of(constant((int(args[0]) if args else 0,), 0, kind, where)._ensure_storage())
        else:
            made = UntypedStorage._of(from_data(list(args[0]), kind, where)._ensure_storage())
        self = object.__new__(TypedStorage)
        self._untyped_storage, self.dtype = made, kind
        return self

    def _flat(self) -> Tensor:
        flat = flat_tensor(self._untyped_storage._cell)
        return flat if flat.dtype is self.dtype else flat.view(_STORED.get(self.dtype, self.dtype))

    @classmethod
    def from_buffer(cls, buffer, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype=None, device=None) -> TypedStorage:
        """A copy of a buffer's elements, which lie there in a byte order ("big", "little", "native")."""
        kind = cls.__dict__.get("dtype")
        kind = kind if isinstance(kind, dt.dtype) else dtype or dt.get_default_dtype()
        made = TypedStorage(wrap_storage=_from_buffer(buffer, byte_order, count, offset, kind), dtype=kind)
        return made if device is None else made.to(device=device)

    @classmethod
    def from_file(cls, filename, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first `size` elements of a file; shared: writes go to the file."""
        kind = cls.__dict__.get("dtype")
        if not isinstance(kind, dt.dtype):
            raise RuntimeError("from_file can only be called on derived classes")
        made = UntypedStorage.from_file(filename, shared, size * kind.itemsize)
        return TypedStorage(wrap_storage=made, dtype=kind)

    def untyped(self) -> UntypedStorage:
        return self._untyped_storage

    def size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    @property
    def filename(self) -> str | None:
        return self._untyped_storage.filename

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    @property
    def device(self):
        return self._untyped_storage.device

    is_cuda = property(lambda self: self._untyped_storage.is_cuda)
    _cdata = property(lambda self: self._untyped_storage._cdata)

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def _new_shared(self, size: int, *, device=None) -> TypedStorage:
        """A storage of so many elements of this one's dtype, in memory that processes share."""
        return TypedStorage(wrap_storage=UntypedStorage._new_shared(size * self.dtype.itemsize, device=device or "cpu"), dtype=self.dtype)

    def type(self) -> str:
        return f"torch.{self.dtype.short}Storage"

    def tolist(self) -> list:
        if not self.size():
            return []
        self._untyped_storage._readable()
        return self._flat().tolist()

    def resizable(self) -> bool:
        return self.untyped().resizable()

    def is_pinned(self, device=None) -> bool:
        return False

    def pickle_storage_type(self) -> str:
        return f"{self.dtype.short}Storage"

    def __iter__(self) -> Iterator:
        return iter(self.tolist())

    def __getitem__(self, i: int):
        self._untyped_storage._readable()
        if isinstance(i, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        n = self.size()
        if not -n <= i < n:
            raise IndexError(f"index {i} out of range for storage of size {n}")
        return self._flat()[i].item()

    def __setitem__(self, i, value) -> None:
        self._flat()[i] = value

    def fill_(self, value) -> TypedStorage:
        self._flat().fill_(value)
        return self

    def copy_(self, source, non_blocking: bool | None = None) -> TypedStorage:
        self._flat().copy_(source._flat())
        return self

    def clone(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def resize_(self, size: int) -> TypedStorage:
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def cpu(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype)

    def cuda(self, device=None, non_blocking: bool = False) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.cuda(device), dtype=self.dtype)

    def to(self, *, dtype=None, device=None) -> TypedStorage:
        """A copy in another dtype or on another device."""
        moved = self._flat().to(dtype=dtype or self.dtype, device=device or self.device, copy=True)
        return TypedStorage(wrap_storage=moved.untyped_storage(), dtype=moved.dtype)

    def __repr__(self):
        return (
            "".join(f" {x}\n" for x in self.tolist())
            + f"[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
        )

    def __reduce__(self) -> tuple:
        return _sent_typed, (flat_tensor(self._untyped_storage._cell), self.dtype)

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), TypedStorage(wrap_storage=UntypedStorage._of(copied(self._untyped_storage._cell, memo)), dtype=self.dtype))


def _caster(dtype):
    return lambda self: self.to(dtype=dtype)


for _name, _dtype in (
    ("float", dt.float32),
    ("double", dt.float64),
    ("half", dt.float16),
    ("bfloat16", dt.bfloat16),
    ("long", dt.int64),
    ("int", dt.int32),
    ("short", dt.int16),
    ("char", dt.int8),
    ("byte", dt.uint8),
    ("bool", dt.bool_),
    ("complex_float", dt.complex64),
    ("complex_double", dt.complex128),
    *((_kind.name, _kind) for _kind in (dt.float8_e4m3fn, dt.float8_e4m3fnuz, dt.float8_e5m2, dt.float8_e5m2fnuz)),
):
    setattr(TypedStorage, _name, _caster(_dtype))
    setattr(UntypedStorage, _name, lambda self, kind=_dtype: TypedStorage(wrap_storage=self, dtype=dt.uint8).to(dtype=kind))


def _untyped_storage(self) -> UntypedStorage:
    """The storage this tensor shares with its views."""
    return UntypedStorage._of(self._ensure_storage())


def _storage(self) -> TypedStorage:
    """The storage this tensor shares with its views, as elements of its dtype."""
    return TypedStorage(wrap_storage=_untyped_storage(self), dtype=self.dtype)


def storage_type(self) -> type:
    """The class of this tensor's storage, of an older kind: `torch.FloatStorage` for float32."""
    return STORAGES[f"{self.dtype.short}Storage"]


Tensor.untyped_storage, Tensor.storage, Tensor.storage_type = _untyped_storage, _storage, storage_type
Tensor._typed_storage = _storage


@public(method=False)
def is_storage(obj) -> bool:
    """Whether obj is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def stored(storage, dtype, offset: int, size: tuple, stride: tuple | None) -> Tensor:
    """A tensor over a storage: elements of dtype at an offset, with a size and strides."""
    cell = storage.untyped()._cell
    stride = contiguous(size).strides if stride is None else stride
    root = root_tensor(cell)
    if root.dtype is not dtype:
        whole = storage.nbytes() // dtype.itemsize * dtype.itemsize // root.dtype.itemsize  # what is left over belongs to no element
        root = flat_tensor(cell)[:whole].view(dtype)
    return root.as_strided(size, stride, offset)


def elements(storage: UntypedStorage | TypedStorage, dtype: dt.dtype | None) -> Tensor:
    """What torch.tensor and its kin make of a storage: its whole elements, in the same memory."""
    storage.untyped()._readable()
    own = storage.dtype if isinstance(storage, TypedStorage) else dtype or dt.int64
    if dtype is not None and dtype is not own:
        raise RuntimeError(f"Expected a Storage of type {dtype.short} or an UntypedStorage, but got {own.short}")
    return stored(storage, own, 0, (storage.nbytes() // own.itemsize,), None).detach()


STORAGES = {
    f"{t.dtype.short}Storage": _TypedMeta(
        f"{t.dtype.short}Storage", (TypedStorage,), {"__module__": "torch", "dtype": t.dtype}
    )
    for t in CPU.values()
}
for _dtype in (dt.complex64, dt.complex128, *_STORED):
    STORAGES[f"{_dtype.short}Storage"] = _TypedMeta(
        f"{_dtype.short}Storage", (TypedStorage,), {"__module__": "torch", "dtype": _dtype}
    )
FUNCTIONS.update(STORAGES, Storage=STORAGES["FloatStorage"], StorageBase=StorageBase, UntypedStorage=UntypedStorage, TypedStorage=TypedStorage)
