"""Memory shared with NumPy: `from_numpy`, `numpy()`. While the user can still reach the array, it holds the truth.

JAX arrays are immutable, so sharing works by looking: a tensor's part of the memory is read when somebody first looks at it, compared with
what was read before each later look, and written where the tensor is. A view looks at no more than it shows, and what picks few
elements of much memory (a batch's rows) reads those alone. Once nobody else holds the array, the tensor is an ordinary one.
"""
from __future__ import annotations

import gc
import mmap
import sys
from collections.abc import Sequence

import numpy as np

from ._core import dtype as dt
from ._core import program
from ._core.aval import NUMBERS, aval
from ._core.device import CPU
from ._core.grad_mode import mode
from ._core.history import warn
from ._core.host import is_foreign
from ._core.layout import Layout, contiguous, extent, is_contiguous, is_dense
from ._core.program import concrete
from ._core.registry import Op, View
from ._core.silence import silently
from ._core.transposing import copy_of
from ._core.value import Unread, Value, is_tracer, of_array
from ._storage import LENT, LONG_AGO, Past, Storage, same_bits, window
from ._tensor import Tensor, _new, _special, is_told_to_nobody

MUCH = 1 << 16  # elements, of which it pays to pick few at once
FEW = 4  # picked elements are few where these times as many are fewer
_COMPUTED = frozenset(("conj", "neg_view", "lens"))  # views that show something else than lies in memory


class Host:
    """The user-visible array of a storage."""

    __slots__ = ("array", "snapshot", "memory", "looked_apart")
    others_write = False  # while we compute

    def __init__(self, array: np.ndarray, snapshot: np.ndarray | None, memory: np.ndarray | None = None):
        self.array, self.snapshot = array, snapshot  # the snapshot is what the storage's value holds; None before that is read
        self.memory = memory  # the elements in order, where the array itself is not contiguous but ours
        self.looked_apart = False  # whether a view was, which then has a snapshot of its own

    def look(self, t: Tensor, st: Storage) -> None:
        """Take over what the user wrote where t lies; where t is a view outside any graph that repeats nothing, no more than that."""
        if not t._chain or not self.is_apart(t) or self._is_lost(st) or (memory := self.part(t)) is None or memory.size > self.array.size:
            self.sync(st)
            if self.looked_apart and t._chain:
                t._follow_growth(st)
                t._seen = LONG_AGO
            return
        v = t._value
        if t._seen != st.version or v.array is None or not same_bits(memory, np.asarray(v.array)):
            t._value, t._seen = of_array(copy_of(memory)), st.version
            self.looked_apart = True

    def sync(self, st: Storage) -> None:
        """Take over what the user wrote anywhere; forget the array when nobody else can reach it."""
        if not self._is_lost(st):
            self._take_over(st)
            return
        v = st.value
        if v.epoch.__class__ is Unread and self.array.flags.c_contiguous and self.array.flags.writeable:
            v.array, v.epoch = self.array, None  # ours alone from here on
        else:
            self._take_over(st)
        st.host = None
        if self.looked_apart:
            Past.add(st)  # views look again, at the storage's value

    def _take_over(self, st: Storage) -> None:
        v = st.value
        if v.epoch.__class__ is Unread:
            v.epoch.read(v)
            self.snapshot = v.array
            return
        if self.snapshot is None:
            self.snapshot = np.asarray(concrete(v))
        if not same_bits(self.array, self.snapshot):
            self.snapshot = np.array(self.array, order="C")
            st.value = of_array(self.snapshot)
            st.version += 1

    @staticmethod
    def is_apart(t: Tensor) -> bool:
        """Whether nothing but its memory says what t shows, at a known place, and nobody is told of operations: no graph, no transformation, no mode."""
        v, base, past = t._value, t._base, t._storage.past
        if past is not None and past.has_grown(t._seen):
            return False
        return (t._edge is None and (base is None or base._edge is None) and not t._unplaced and v.__class__ is Value and not is_tracer(v.array)
                and program.state.capture is None and program.state.program.__class__ is program.Program and is_told_to_nobody())

    def _is_lost(self, st: Storage) -> bool:
        """Whether nobody else can reach the array."""
        unread = st.value.epoch
        if sys.getrefcount(self.array) > 2 + (unread.__class__ is Unread and unread.memory is self.array) or self.memory is not None and sys.getrefcount(self.memory) > 3:
            return False
        return not _reachable(self.array)

    def in_order(self) -> np.ndarray:
        """The memory from the first element to the last, as a vector."""
        array = self.array
        if array.flags.c_contiguous:
            return array.reshape(-1)
        return _span(array) if self.memory is None else self.memory

    def part(self, t: Tensor, computed: frozenset[str] = _COMPUTED) -> np.ndarray | None:
        """The memory that t, whose place is known, shows; None where it shows something else."""
        if not t._chain:
            return self.array
        if not self.array.size or any(op.name in computed for op, _, _ in t._chain):
            return None
        layout, kind = t._strided(), t._value.aval.dtype.np  # a view of parts or bits counts its layout in its own elements
        if 0 in layout.shape:
            return None
        return np.ndarray(layout.shape, kind, self.in_order(), layout.offset * kind.itemsize, [s * kind.itemsize for s in layout.strides])

    def view(self, t: Tensor, op: View, statics: tuple, numbers: tuple) -> Tensor | None:
        """A view of t that is read when somebody looks at it; None where it must be recorded (one of another dtype gets its layout afterwards)."""
        if self._is_lost(t._storage):  # `from_numpy(array(image))`: ours alone
            self.sync(t._storage)
            return None
        if not self.is_apart(t) or op.name in _COMPUTED or op.name == "view_dtype" or not set(map(type, numbers)) <= NUMBERS.keys():
            return None
        a = t._value.aval
        plan = op.plan((a, *[NUMBERS[n.__class__] for n in numbers]), statics)
        out = _new(Tensor)
        out._value = Value(plan.outs[0])
        t._shows(out, (op, numbers, statics), op.layout(t._layout or contiguous(a.shape), (*numbers, *statics)))
        memory = self.part(out)
        if memory is None or memory.size > self.array.size:  # expanded: what reads it need not
            return None
        out._value.epoch = Unread(memory)
        return _special(op, (t, *numbers), out, plan, True)

    def pick(self, op: Op, args: Sequence, statics: tuple) -> Tensor | None:
        """What an operation picks of this memory, read at once; None where that is not little, or must be recorded."""
        t = args[0]
        if t._value.aval.numel < MUCH or not self.is_apart(t) or (memory := self.part(t)) is None:
            return None
        if any(x is not None and (not isinstance(x, Tensor) or x._value.__class__ is not Value or x._edge is not None) for x in args[1:]):
            return None
        others = [None if x is None else x._current() for x in args[1:]]
        plan = op.plan((t._value.aval, *[None if v is None else v.aval for v in others]), statics)
        if not plan.single or plan.device.type != "cpu" or plan.outs[0].numel * FEW > t._value.aval.numel or is_foreign(plan):
            return None
        arrays = [None if v is None else concrete(v) for v in others]
        if any(map(is_tracer, arrays)):
            return None
        made = silently(plan.numpy, memory, *[x if x is None else np.asarray(x) for x in arrays])
        out = _new(Tensor)
        out._value = Value(plan.outs[0], np.array(made) if np.may_share_memory(made, memory) else made)
        return _special(op, args, out, plan, True)

    def put(self, t: Tensor, st: Storage, new: Tensor) -> bool:
        """Write `new` where t lies; False where a graph must know."""
        if not self.is_apart(t) or new._value.__class__ is not Value or mode.enabled and new._edge is not None:
            return False
        memory = self.part(t)
        if memory is None or not memory.flags.writeable:
            return False
        before = np.array(memory, order="C") if self.others_write else None
        array = concrete(new._current())
        if is_tracer(array):
            return False
        if before is None:
            np.copyto(memory, array)
        else:
            copy_changes(memory, before, array)
        whole = st.value.aval
        st.value, self.snapshot = Value(whole, None, Unread(self.array)), None
        t._count_write(st)
        t._value, t._seen = Value(t._value.aval, None, Unread(memory)) if t._chain else st.value, st.version
        self.looked_apart = True
        return True

    def write(self, st: Storage) -> None:
        """The storage has another value: show it in the array. One that cannot be written (torch writes there nevertheless) is left alone from then on."""
        if not self.array.flags.writeable:
            st.host = None
            return
        self.snapshot = np.array(concrete(st.value), order="C")
        np.copyto(self.array, self.snapshot)


def copy_changes(memory: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
    """Write into memory, which held `before` and which others may have written since, those elements in which `after` differs."""
    np.copyto(memory, after, where=(_bits(before) != _bits(after)).any(-1).reshape(memory.shape))


def _bits(array: np.ndarray) -> np.ndarray:
    """The elements as whole numbers, one row for each: NaN equals itself."""
    return np.ascontiguousarray(array).reshape(-1, 1).view(f"u{min(array.itemsize, 8)}")


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
            owner = getattr(owner, "base", None)  # of an array, or of what `as_strided` puts between two
    return False


_READ_ONLY = ("The given {} is not writable, and PyTorch does not support non-writable tensors. This means {}. You may want to copy the {} to protect its "
              "data or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program.")
READ_ONLY_ARRAY = _READ_ONLY.format("NumPy array", "writing to this tensor will result in undefined behavior", "array")
READ_ONLY_BUFFER = _READ_ONLY.format("buffer", "you can write to the underlying (supposedly non-writable) buffer using the tensor", "buffer")


def share(array: np.ndarray, read_only: str = READ_ONLY_ARRAY) -> Tensor:
    """A tensor over the user's array; the text says that it cannot be written."""
    if not array.flags.writeable:
        warn(read_only, once=True)
    refuse_reversed(array)
    t = _new(Tensor)
    t._value = Value(aval(array.shape, dt.from_numpy_dtype(array.dtype), CPU), None, Unread(array))
    if not array.flags.c_contiguous or not array.size:
        layout = Layout(array.shape, tuple(s // array.itemsize for s in array.strides), 0)
        t._layout = None if is_contiguous(layout) and array.size else layout
        if array.size and not is_dense(layout):
            return _within(t, array)
    st = t._ensure_storage()
    st.host = Host(array, None)
    return t


def refuse_reversed(array: np.ndarray) -> None:
    """ValueError for an array that is not in the order of memory, which torch does not even copy."""
    if any(s < 0 for s in array.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are "
                         "not currently supported. (You can probably work around this by making a copy of your array  with "
                         "array.copy().) ")


def _within(t: Tensor, array: np.ndarray) -> Tensor:
    """t, over an array whose elements have others between them or are the same place: a window of a storage from its first element to its last."""
    memory = _span(array)
    st = Storage(Value(aval(memory.shape, t._value.aval.dtype, CPU), None, Unread(memory)), None)
    st.host = Host(memory, None)
    t._storage, t._chain = st, (window(st, t._layout),)
    return t


def _span(array: np.ndarray) -> np.ndarray:
    """The memory from an array's first element to its last, as a vector."""
    size = sum((n - 1) * s for n, s in zip(array.shape, array.strides)) // array.itemsize + 1
    return np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,), writeable=array.flags.writeable)


def numpy_view(t: Tensor) -> np.ndarray:
    """t's data as a writable array that shares memory with t and all its aliases."""
    t._strided()  # finds its place
    st = t._ensure_storage()
    if st.past is not None and st.past.has_grown(t._seen):
        t._current()  # finds its window of that
    if st.host is LENT:
        LENT.sync(st)
    if st.host is None:
        t._current().shared = True
        held = np.asarray(concrete(st.value))
        root = np.array(held, order="C")
        if isinstance(st.memory, np.ndarray):  # the address is known: the array must lie there
            root = _moved(root, st.memory)
        root_layout = st.layout
        if root_layout is not None and root_layout.shape == root.shape and not is_contiguous(root_layout):
            _strided_root(st, root, root_layout)
        else:
            st.host = Host(root, held)
    array = st.host.part(t, _COMPUTED - {"lens"})  # what has another tangent has the same numbers
    return np.array(concrete(t._current())) if array is None else array if t._chain else array.view()


def glance(t: Tensor) -> np.ndarray:
    """t's data as it is now, in an array to read at once: what it shares memory with may change."""
    host = None if t._storage is None else t._storage.host
    memory = host.part(t) if host is not None and host.is_apart(t) else None
    return t._host_array() if memory is None else memory


def _moved(array: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """The array in this memory."""
    there = memory[:array.nbytes].view(array.dtype).reshape(array.shape)
    np.copyto(there, array)
    return there


def _strided_root(st: Storage, root: np.ndarray, layout: Layout) -> None:
    """A root that is not contiguous (nor dense, where a transformation handed a view on): its array has the same strides."""
    size = extent(layout)
    known = isinstance(st.memory, np.ndarray) and st.memory.nbytes >= size * root.itemsize
    memory = st.memory[:size * root.itemsize].view(root.dtype) if known else np.empty(size, root.dtype)
    array = np.ndarray(layout.shape, root.dtype, memory, layout.offset * root.itemsize, [s * root.itemsize for s in layout.strides])
    np.copyto(array, root)
    st.host = Host(array, root, memory)
