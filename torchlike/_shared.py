"""Memory that processes share: `share_memory_()`. It lies in files without a name (torch's strategy `file_descriptor`), which every process maps.

A forked process has the mapping already; to others multiprocessing's pickler sends the file's descriptor. A tensor looks into the memory
before each read, as into NumPy's (_host.py), and a write puts there at once the elements that it changed, and no others: processes that
write different elements of one tensor do not meet.
"""
from __future__ import annotations

import math
import mmap
import os
import tempfile
import weakref
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from ._core import dtype as dt
from ._core.layout import Layout, contiguous, extent, is_contiguous
from ._core.program import concrete
from ._core.value import of_array
from ._host import Host, copy_changes
from ._storage import ALIGNMENT, Storage
from ._tensor import Tensor, _new

CHUNK = 1 << 22  # small storages lie in one file: a model has more of them than a process may open files


class File:
    """A file that is mapped as a whole; `used` bytes of it were given away."""

    def __init__(self, descriptor: int, size: int):
        self.descriptor, self.used = descriptor, 0
        self.bytes = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
        status = os.fstat(descriptor)
        _files[status.st_dev, status.st_ino] = self

    def __reduce__(self) -> tuple:  # once in each message, however many tensors lie here
        try:
            from multiprocessing.reduction import DupFd
        except ImportError:
            raise RuntimeError("torchlike: shared tensors cannot be sent to other processes on Windows, which has no descriptors to send") from None
        return _opened, (DupFd(self.descriptor), self.bytes.size)

    def __del__(self, close=os.close):  # kept: a process that ends may have emptied its modules before
        close(self.descriptor)


_files: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # by device and inode: what a process is sent twice it maps once
_room: dict[int, File] = {}  # where the next small storage goes, by process: forked ones share what their parent gave away, not what is left


def _new_file(size: int) -> File:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("torchlike")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return File(descriptor, size)


def _place(size: int) -> tuple[File, int]:
    """A file with room for so many bytes, and where they begin."""
    if size > CHUNK // 8:
        return _new_file(size), 0
    file = _room.get(os.getpid())
    if file is None or file.used + size > CHUNK:
        _room.clear()
        file = _room[os.getpid()] = _new_file(CHUNK)
    start = file.used
    file.used += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
    return file, start


class Shared(Host):
    """The array of a storage that processes share: `file` and where in it the array begins."""

    __slots__ = ("file", "start")
    others_write = True

    def __init__(self, file: File, start: int, layout: Layout, kind: np.dtype, new: np.ndarray | None = None):
        memory = file.bytes[start:start + math.prod(layout.shape) * kind.itemsize].view(kind)
        array = np.lib.stride_tricks.as_strided(memory, layout.shape, tuple(s * kind.itemsize for s in layout.strides))
        if new is not None:
            np.copyto(array, new)
        super().__init__(array, array.copy(), memory)
        self.file, self.start = file, start

    def _is_lost(self, st: Storage) -> bool:
        return False  # other processes may write it

    def write(self, st: Storage) -> None:
        new = np.array(concrete(st.value), order="C")
        if self.snapshot is None:  # nobody has read it
            np.copyto(self.array, new)
        else:
            copy_changes(self.array, self.snapshot, new)
        self.snapshot = new


def share(st: Storage) -> None:
    """Move the storage into memory that processes share."""
    a = st.value.aval
    if a.device.type != "cpu" or is_shared(st):
        return
    if st.host is not None:
        st.host.sync(st)
    root = np.asarray(concrete(st.value))
    layout = st.layout if st.layout is not None and st.layout.shape == root.shape else contiguous(root.shape)
    st.host = Shared(*_place(root.nbytes), layout, root.dtype, root)
    st.memory, st.shown = None, -1  # it lies elsewhere now


def is_shared(st: Storage | None) -> bool:
    return st is not None and st.host.__class__ is Shared


# -- sent to other processes -----------------------------------------------------------------------------------------------------


def sent_by_file(cls: type) -> None:
    """multiprocessing sends a class's shared tensors by their file, and refuses those whose graph would stay behind."""
    ForkingPickler.register(cls, _reduced)


def _reduced(t: Tensor) -> tuple:
    st = t._storage
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
                           "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on the "
                           "queue).")
    if not is_shared(st) or t.is_conj() or t.is_neg():
        return t.__reduce_ex__(2)
    host = st.host
    return _rebuilt, (getattr(t, "_is_param", False), host.file, host.start, host.array.nbytes, t.dtype, t._strided(), t.requires_grad, dict(vars(t)))


def _opened(sent: Any, size: int) -> File:
    """The file that another process sent."""
    descriptor = sent.detach()
    status = os.fstat(descriptor)
    file = _files.get((status.st_dev, status.st_ino))
    if file is None:
        return File(descriptor, size)
    os.close(descriptor)
    return file


def _rebuilt(is_parameter: bool, file: File, start: int, nbytes: int, dtype: dt.dtype, layout: Layout, requires_grad: bool, state: dict) -> Tensor:
    kind, whole = dtype.np, Layout(layout.shape, layout.strides, 0)
    size = math.prod(layout.shape)
    if layout.offset == 0 and size == extent(whole) and size * kind.itemsize == nbytes:
        t = _over(Shared(file, start, whole, kind))
    else:
        t = _over(Shared(file, start, contiguous((nbytes // kind.itemsize,)), kind)).as_strided(layout.shape, layout.strides, layout.offset).detach()
    if is_parameter:
        from .nn.parameter import Parameter
        t = Parameter(t, requires_grad)
    for key, held in state.items():
        setattr(t, key, held)
    return t.requires_grad_(requires_grad)


def _over(host: Shared) -> Tensor:
    """A tensor over all of an array in shared memory."""
    t = _new(Tensor)
    t._value = of_array(host.snapshot)
    strides = tuple(s // host.array.itemsize for s in host.array.strides)
    layout = Layout(host.array.shape, strides, 0)
    t._layout = None if is_contiguous(layout) else layout
    t._ensure_storage().host = host
    return t


sent_by_file(Tensor)
