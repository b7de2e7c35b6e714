"""What a compiled call goes by besides its arguments: variables, attributes and what containers hold.

Everything is compared by identity first, since it seldom changes; numbers that are equal count as the same.
"""
from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterable, Iterator, Set
from types import CellType
from typing import Any

import numpy as np

from ._core import dtype as dt
from ._tensor import Tensor
from .nn.modules import _hooks
from .nn.modules.module import Module

NUMBERS = (int, float, bool, str)
PLAIN = frozenset([*NUMBERS, complex, bytes, type(None), dt.dtype])
CONTAINERS = (list, tuple, dict, set, frozenset, deque)
LONG = 1000  # a longer container goes by itself and its length
MISSING = object()
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
GLOBAL_HOOKS = [getattr(_hooks, f"_global{name}") for name in HOOKS]


def sameness(x: Any) -> Any:
    """A key that is equal for what no call can tell apart: values of plain types, else identities."""
    return (x.__class__, x) if x.__class__ in PLAIN else id(x)


def content(x: Any, depth: int = 3) -> Any:
    """The key of what a container or array holds, and of containers in it."""
    if isinstance(x, np.ndarray):
        return id(x), x.shape, x.dtype.str, x.tobytes() if not x.dtype.hasobject else tuple(map(id, x.flat))
    if not isinstance(x, CONTAINERS) or depth == 0:
        return sameness(x)
    if len(x) > LONG:
        return id(x), len(x)
    if isinstance(x, dict):
        return tuple([(sameness(k), content(v, depth - 1)) for k, v in x.items()])
    return tuple([content(v, depth - 1) for v in x])


def standing(t: Tensor) -> tuple:
    """What a trace takes for granted of a tensor that it reads, besides its data: also whether its gradient is wanted, and by whom."""
    edge = t._edge
    hooks = None if edge is None else (edge.hooks, getattr(edge, "post_accumulate", None))
    return t._value.aval, t._layout, hooks if hooks is None or hooks == (None, None) else (id(edge.hooks), *map(len, filter(None, _tables(*hooks))))


def _tables(hooks: Any, post_accumulate: dict | None) -> list:
    return [post_accumulate] if hooks is None else [post_accumulate, hooks.pre, hooks.post, *hooks.tensor.values()]


def held_by(cell: CellType) -> Any:
    """A closure variable's value; MISSING before it has one."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


class Guards:
    """Places that decide what a call does; `key()` is equal as long as they hold the same."""

    def __init__(self) -> None:
        self.modules: list[dict] = []  # what modules have and their hooks: how many things, and those that are plain, tensors and modules
        self.owners: list[dict] = []  # dictionaries (of variables, of attributes), and a name in each
        self.names: list[str] = []
        self.cells: list[CellType] = []
        self.attributes: list[tuple[Any, str]] = []  # that lie in no dictionary: of classes, in slots
        self.contents: list[Any] = []
        self.known: set = set()
        self._sizes: list[int] | None = None
        self._plain: tuple[list[dict], list[str]] = [], []
        self._before: list = []
        self._key: tuple = ()

    def add_modules(self, modules: Iterable[Module], elsewhere: Set = frozenset()) -> None:
        """What lies plainly in modules and in those inside of them."""
        for top in modules:
            for m in top.modules():
                if self._new(("module", id(m)), elsewhere):
                    self.modules += m.__dict__, m._parameters, m._buffers, m._modules, *(getattr(m, name) for name in HOOKS)
        if self.modules:
            self.modules += [d for d in GLOBAL_HOOKS if self._new(("module", id(d)), elsewhere)]

    def add(self, place: tuple, elsewhere: Set = frozenset()) -> None:
        """A place: ("name", dictionary, name), ("cell", cell), ("attribute", object, name) or ("content", container); `elsewhere`: those
        that others guard."""
        if not self._new(identity(place), elsewhere):
            return
        kind, *where = place
        if kind == "name":
            self.owners.append(where[0])
            self.names.append(where[1])
        elif kind == "cell":
            self.cells.append(where[0])
        elif kind == "attribute":
            self.attributes.append((where[0], where[1]))
        else:
            self.contents.append(where[0])

    def _new(self, place: tuple, elsewhere: Set) -> bool:
        if place in self.known or place in elsewhere:
            return False
        self.known.add(place)
        self._key = ()
        return True

    def values(self) -> list:
        """What is in the places now, but for the contents of containers."""
        sizes = list(map(len, self.modules))
        if sizes != self._sizes:
            plain = [(d, k) for d in self.modules for k, v in d.items() if v.__class__ in PLAIN or isinstance(v, (Tensor, Module))]
            self._key = ()
            self._sizes, self._plain = sizes, ([d for d, _ in plain], [k for _, k in plain])
        now = [*map(dict.get, *self._plain), *map(dict.get, self.owners, self.names)]
        if self.cells:
            now += map(held_by, self.cells)
        if self.attributes:
            now += [getattr(x, name, MISSING) for x, name in self.attributes]
        return now

    def key(self) -> tuple:
        now = self.values()
        before = self._before
        if not self._key or len(now) != len(before) or not all(map(operator.is_, now, before)):
            self._key = *self._sizes, *map(sameness, now)
            self._before = now
        return (self._key, tuple(map(content, self.contents))) if self.contents else self._key

    def objects(self) -> Iterator[Any]:
        """What the key names by identity: nothing else may get these addresses while the key is in use."""
        yield from self._before
        yield from self.contents


def identity(place: tuple) -> tuple:
    """A place's key: objects by identity, names by value."""
    return tuple([x if isinstance(x, str) else id(x) for x in place])


def value_at(place: tuple) -> Any:
    """What tells whether a place changed."""
    kind, *where = place
    if kind == "name":
        return sameness(where[0].get(where[1], MISSING))
    if kind == "cell":
        return sameness(held_by(where[0]))
    if kind == "attribute":
        return sameness(getattr(*where, MISSING))
    return content(where[0])
