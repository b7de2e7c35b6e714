"""Memory shared with NumPy: `from_numpy`, `numpy()`. While the user can still reach the array, it holds the truth.

JAX arrays are immutable, so sharing works by looking: before a shared tensor is read, the array is compared with the last
snapshot, and after it is written, the array is written too. Once nobody else holds the array, the tensor is an ordinary one.
"""
from __future__ import annotations

import gc
import mmap
import sys

import numpy as np

from ._core.history import warn
from ._core.layout import Layout, is_contiguous
from ._core.program import concrete
from ._core.value import of_array
from ._storage import Storage
from ._tensor import Tensor, _new


class Host:
    """The user-visible array of a storage."""

    __slots__ = ("array", "snapshot", "memory")

    def __init__(self, array: np.ndarray, snapshot: np.ndarray, memory: np.ndarray | None = None):
        self.array, self.snapshot = array, snapshot
        self.memory = memory  # the elements in order, where the array itself is not contiguous but ours

    def take_over(self, st: Storage) -> None:
        """What was written into the array becomes the tensor's value."""
        if not _same(self.array, self.snapshot):
            self.snapshot = self.array.copy()
            st.value = of_array(self.snapshot)
            st.version += 1

    def sync(self, st: Storage) -> None:
        """Take over what the user wrote into the array; forget the array when nobody else can reach it."""
        self.take_over(st)
        if sys.getrefcount(self.array) <= 2 and not _reachable(self.array):
            st.host = None

    def write(self, st: Storage) -> None:
        """The tensor was written: show it in the array. One that cannot be written (torch writes there nevertheless) is left alone from then on."""
        if not self.array.flags.writeable:
            st.host = None
            return
        self.snapshot = np.array(concrete(st.value))
        np.copyto(self.array, self.snapshot)


def _reachable(array: np.ndarray) -> bool:
    """Whether somebody else holds what the array's memory belongs to: an array, or through a memoryview a bytearray, a mapped file, ..."""
    owner = array.base
    while owner is not None:
        if sys.getrefcount(owner) > 3 or owner.__class__ is mmap.mmap or owner.__class__.__name__ in ("PyCapsule", "_Writable"):
            return True  # other processes may write a mapped file, other libraries what they gave by DLPack
        if isinstance(owner, memoryview):
            if sys.getrefcount(gc.get_referents(owner)[0]) > 2:  # what memoryviews of one buffer have in common
                return True
            owner = owner.obj
        else:
            owner = owner.base if isinstance(owner, np.ndarray) else None
    return False


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Bitwise equality (so that NaN equals itself)."""
    if a.flags.c_contiguous:
        return np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8))
    return a.tobytes() == b.tobytes()


_READ_ONLY = ("The given {} is not writable, and PyTorch does not support non-writable tensors. This means {}. You may want to copy the {} to protect its "
              "data or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program.")
READ_ONLY_ARRAY = _READ_ONLY.format("NumPy array", "writing to this tensor will result in undefined behavior", "array")
READ_ONLY_BUFFER = _READ_ONLY.format("buffer", "you can write to the underlying (supposedly non-writable) buffer using the tensor", "buffer")


def share(array: np.ndarray, read_only: str = READ_ONLY_ARRAY) -> Tensor:
    """A tensor over the user's array; the text says that it cannot be written."""
    if not array.flags.writeable:
        warn(read_only, once=True)
    if any(s < 0 for s in array.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are "
                         "not currently supported. (You can probably work around this by making a copy of your array  with "
                         "array.copy().) ")
    snapshot = np.array(array, order="C")
    value = of_array(snapshot)
    t = _new(Tensor)
    t._value = value
    if not array.flags.c_contiguous or not array.size:
        layout = Layout(array.shape, tuple(s // array.itemsize for s in array.strides), 0)
        t._layout = None if is_contiguous(layout) and array.size else layout
    st = t._ensure_storage()
    st.host = Host(array, snapshot)
    return t


def numpy_view(t: Tensor) -> np.ndarray:
    """t's data as a writable array that shares memory with t and all its aliases."""
    value = t._current()
    st = t._ensure_storage()
    if st.host is None:
        value.shared = True
        root = np.array(concrete(st.value))
        if isinstance(st.memory, np.ndarray):  # the address is known: the array must lie there
            root = _moved(root, st.memory)
        root_layout = st.layout
        if root_layout is not None and root_layout.shape == root.shape and not is_contiguous(root_layout):
            _strided_root(st, root, root_layout)
        else:
            st.host = Host(root, root.copy())
    array = st.host.array
    if not t._chain:
        return array.view()
    layout = t._strided()
    memory = array.reshape(-1) if array.flags.c_contiguous else st.host.memory
    if memory is None:
        return np.array(concrete(value))
    kind = value.aval.dtype.np  # a view of parts or bits counts its layout in its own elements
    flat = memory.view(kind)[layout.offset:]
    return np.lib.stride_tricks.as_strided(flat, layout.shape, tuple(s * kind.itemsize for s in layout.strides))


def _moved(array: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """The array in this memory."""
    there = memory[:array.nbytes].view(array.dtype).reshape(array.shape)
    np.copyto(there, array)
    return there


def _strided_root(st: Storage, root: np.ndarray, layout: Layout) -> None:
    """A root that is dense but not contiguous: its array has the same strides."""
    size = root.size
    memory = np.empty(size, root.dtype) if not isinstance(st.memory, np.ndarray) else st.memory.view(root.dtype)[:size]
    array = np.lib.stride_tricks.as_strided(memory, layout.shape, tuple(s * root.itemsize for s in layout.strides))
    np.copyto(array, root)
    st.host = Host(array, root, memory)
