"""Storage: the memory that a tensor and its views share, and what chains of views read and write of it."""
from __future__ import annotations

import itertools

import numpy as np
from jax.numpy import asarray

from ._core import dtype as dt
from ._core import program
from ._core.grad_mode import mode
from ._core.jax_settings import engine_settings
from ._core.layout import Layout, contiguous, is_contiguous, is_dense
from ._core.program import record
from ._core.registry import OPS
from ._core.traces import unseen
from ._core.value import Value, is_tracer

_addresses = itertools.count(1)
PAGE = 1 << 40  # addresses on other devices are made up, and lie this far apart
ALIGNMENT = 64  # bytes, as torch's


class Storage:
    """The mutable cell that aliases share: the root tensor's current value, and a version that counts writes."""

    __slots__ = ("value", "layout", "version", "unseen", "host", "past", "memory", "shown", "__weakref__")

    def __init__(self, value: Value, layout: Layout | None, version: int = 0):
        self.value, self.layout, self.version = value, layout, version
        self.unseen = 0  # writes through `.data`, which `_version` does not count
        self.host = None  # an np.ndarray that the user may write, see _host.py; or LENT
        self.past: Past | None = None
        self.memory: np.ndarray | int | None = None  # the bytes behind `address`; a number where they are not on the CPU
        self.shown = -1  # the version that memory shows

    @property
    def address(self) -> int:
        """Where the data lies for code that reads memory (ctypes, safetensors): reserved at the first question and then kept,
        because torch's address outlives writes. Each question brings the bytes up to date, and lends the memory to who asked."""
        a = self.value.aval
        if self.value.array is program.META_ARRAY:
            return 0
        if a.device.type != "cpu":
            self.memory = self.memory or next(_addresses) * PAGE
            return self.memory
        size = a.numel * a.dtype.itemsize
        if self.host is not None and self.memory is None:  # the user's array is where the data lies
            self.memory = self.host.in_order().view(np.uint8)
        if self.memory is None or self.memory.size < size:
            room = np.empty(size + ALIGNMENT, np.uint8)
            start = -room.ctypes.data % ALIGNMENT
            self.memory, self.shown = room[start:start + size], -1
        if self.shown != self.version and self.host is None and program.state.capture is None:
            self._show(size)
        if self.host is None and self.shown == self.version and self.value.__class__ is Value and self._lies_as_shaped():
            self.host = LENT
        return self.memory.ctypes.data

    def _lies_as_shaped(self) -> bool:
        layout = self.layout
        return layout is None or layout.shape == self.value.aval.shape and not layout.offset and is_dense(layout)

    def _show(self, size: int) -> None:
        """Write the data into memory, in the order of memory."""
        value = self.value
        if self.layout is not None and not is_contiguous(self.layout):
            op, numbers, statics = in_order(self, value.aval.numel)
            value = record(op, [value, *numbers], statics)[1][0]
        array = program.concrete(value)
        if not is_tracer(array):
            self.memory[:size] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self.shown = self.version


class Lent:
    """In a Host's place: memory at an address that somebody asked for and may write (a function in C, called by ctypes).

    What lies there when the tensor is next looked at is its data. From then on it is the tensor's alone: nobody says when such code has done.
    """

    def look(self, t: object, st: Storage) -> None:
        """Take over what was written."""
        self.sync(st)

    def sync(self, st: Storage) -> None:
        """Take over what was written."""
        st.host = None
        if st.shown != st.version or program.state.capture is not None:
            return
        held = np.asarray(program.concrete(st.value))
        strides = None if st.layout is None else [s * held.itemsize for s in st.layout.strides]
        memory = np.ndarray(held.shape, held.dtype, st.memory, strides=strides)
        if not same_bits(memory, held):
            st.value = Value(st.value.aval, np.array(memory, order="C"))
            Past.add(st)  # as a write through `.data`
            st.shown = st.version

    def write(self, st: Storage) -> None:
        """The tensor has another value, which the memory does not show."""
        st.host = None

    def view(self, *_: object) -> None:
        """What a Host answers itself: nothing here."""

    pick = view

    def put(self, *_: object) -> bool:
        """Nor this."""
        return False

    def is_apart(self, t: object) -> bool:
        """Nor this."""
        return False


LENT = Lent()
_FEW = 1 << 12  # bytes, which are copied in less time than NumPy compares them


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Bitwise equality (so that NaN equals itself) of two arrays of one shape and dtype."""
    if a.nbytes > _FEW:
        if a.flags.c_contiguous and b.flags.c_contiguous:
            kind = np.uint64 if a.nbytes % 8 == 0 else np.uint8
            return np.array_equal(a.reshape(-1).view(kind), b.reshape(-1).view(kind))
        if a.itemsize <= 8:
            return np.array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{a.itemsize}"))
    return a.tobytes() == b.tobytes()


LONG_AGO = -1  # the version that a tensor has seen which must look at the storage's value, having had a snapshot of its own


class Past:
    """What befell a storage besides writes; aliases that were last looked at before have to catch up."""

    __slots__ = ("growths", "unseen")

    def __init__(self):
        self.growths: list[tuple[int, tuple]] = []  # (version, link from the grown root to the former one)
        self.unseen = (1, 0)  # first and last of a run of versions that `_version` does not count: views stay in the graph they are in

    @staticmethod
    def add(st: Storage) -> Past:
        """Count an event that `_version` does not count: a write through `.data`, requires_grad switched, growth."""
        past = st.past
        if past is None:
            past = st.past = Past()
        st.version += 1
        st.unseen += 1
        first, last = past.unseen
        past.unseen = (first if last == st.version - 1 else st.version, st.version)
        return past

    def has_grown(self, seen: int) -> bool:
        """Whether the storage has grown since version `seen`."""
        return bool(self.growths) and self.growths[-1][0] > seen


def through(value: Value, chain: tuple) -> Value:
    """What a chain of views shows of the root's value."""
    for op, numbers, statics in chain:
        value = record(op, [value, *numbers], statics)[1][0]
    return value


def put(root: Value, chain: tuple, new: Value) -> Value:
    """root with the part that a chain of views shows replaced by new."""
    if not chain:
        return new
    op, numbers, statics = chain[0]
    if len(chain) > 1:
        new = put(record(op, [root, *numbers], statics)[1][0], chain[1:], new)
    return record(op.put, [root, new, *numbers], statics)[1][0]


def is_traced(value: Value) -> bool:
    return value.array is not None and is_tracer(value.array)


def past_autograd(was: Value, value: Value) -> Value:
    """What a write under no_grad leaves in a trace of JAX's: the derivative stays what it was, as the graph does."""
    if mode.walk is not None or value.__class__ is not Value or value.aval.dtype.category < dt.FLOAT:
        return value
    with engine_settings():
        return Value(value.aval, unseen(asarray(program.concrete(was)), asarray(program.concrete(value))))


def window(st: Storage, layout: Layout) -> tuple:
    """The link of a chain that shows a storage's root as this layout."""
    return OPS["as_strided"], (), (places(st), *layout)


def in_order(st: Storage, n: int) -> tuple:
    """The link of a chain that shows the root's first n elements in the order of memory."""
    return OPS["as_strided"], (), ((st.layout or contiguous(st.value.aval.shape)).strides, (n,), (1,), 0)


def places(st: Storage) -> tuple:
    """Where the root's elements lie in memory, for as_strided: its strides, or its layout where it has not all of the memory (an example of many)."""
    root = st.layout or contiguous(st.value.aval.shape)
    return root.strides if not root.offset and is_dense(root) else Layout(*root)


def without_overlaps(chain: tuple, layout: Layout, dtype: dt.dtype, st: Storage) -> tuple:
    """The chain to write through instead of one of which some view repeats elements: one strided window of the root, `layout` in elements of dtype."""
    root = st.value.aval
    if dtype is root.dtype:
        links = (window(st, layout),)
    else:  # the window counts in elements of another dtype
        whole = root.numel * root.dtype.itemsize // dtype.itemsize * dtype.itemsize // root.dtype.itemsize
        links = in_order(st, whole), (OPS["view_dtype"], (), (dtype,)), (OPS["as_strided"], (), ((1,), *layout))
    names = [op.name for op, _, _ in chain]
    if names and names[0] == "lens":
        links = (chain[0], *links)
    if (names.count("neg_view") + ("imag" in names and names[:names.index("imag")].count("conj"))) % 2:  # see `is_neg`
        links = (*links, (OPS["neg_view"], (), ()))
    return (*links, (OPS["conj"], (), ())) if dtype.is_complex and names.count("conj") % 2 else links
