"""Storage: the memory that a tensor and its views share, and what chains of views read and write of it."""
from __future__ import annotations

import itertools

from ._core.layout import Layout, contiguous
from ._core.program import record
from ._core.registry import OPS
from ._core.value import Value

_addresses = itertools.count(1)
PAGE = 1 << 40  # storages' made-up addresses lie this far apart


class Storage:
    """The mutable cell that aliases share: the root tensor's current value, and a version that counts writes."""

    __slots__ = ("value", "layout", "version", "unseen", "address", "host", "past", "__weakref__")

    def __init__(self, value: Value, layout: Layout | None, version: int = 0):
        self.value, self.layout, self.version = value, layout, version
        self.address = next(_addresses) * PAGE
        self.unseen = 0  # writes through `.data`, which `_version` does not count
        self.host = None  # an np.ndarray that the user may write: see _host.py
        self.past: Past | None = None


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


def window(st: Storage, layout: Layout) -> tuple:
    """The link of a chain that shows a storage's root as this layout."""
    root = st.layout or contiguous(st.value.aval.shape)
    return OPS["as_strided"], (), (root.strides, *layout)
