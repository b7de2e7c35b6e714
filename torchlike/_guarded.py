"""What a compiled call goes by besides its arguments: variables, attributes and what containers hold.

Everything is compared by identity first, since it seldom changes; numbers that are equal count as the same.
"""
from __future__ import annotations

import contextlib
import itertools
import operator
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Set
from types import CellType
from typing import Any

import numpy as np

from ._core import dtype as dt
from ._core.graph import AccumulateGrad, Hooks
from ._core.layout import Layout
from ._tensor import Tensor
from .nn.modules import module as everywhere
from .nn.modules.module import Module

NUMBERS = (int, float, bool, str)
PLAIN = frozenset([*NUMBERS, complex, bytes, type(None), dt.dtype, Layout])
CONTAINERS = (list, tuple, dict, set, frozenset, deque)
LONG = 1000  # a longer container goes by itself and its length
MISSING = object()
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_AVAL, _LAYOUT, _EDGE, _CONTENTS = map(operator.attrgetter, ("_value.aval", "_layout", "_edge", "cell_contents"))
_PARTS, _HOOKS, _POST = operator.attrgetter("_value.aval", "_layout", "_edge"), operator.attrgetter("hooks"), operator.attrgetter("post_accumulate")
_count = itertools.count()
MOST_TOKENS = 64


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


def held_by(cell: CellType) -> Any:
    """A closure variable's value; MISSING before it has one."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _count_of(hooks: Hooks) -> int:
    return sum(map(len, (hooks.pre, hooks.post, *hooks.tensor.values())))


class Guards:
    """Places that decide what a call does; `key()` is equal as long as they hold the same."""

    def __init__(self) -> None:
        self.modules: list[dict] = []  # what modules have: how many things, and those that are plain, tensors and modules
        self.hooks: list[dict] = []  # of modules: how many
        self.owners: list[dict] = []  # dictionaries (of variables, of attributes), and a name in each
        self.names: list[str] = []
        self.cells: list[CellType] = []
        self.attributes: list[tuple[Any, str, Any]] = []  # that lie in no dictionary (of classes, in slots), as arguments of getattr
        self.contents: list[Any] = []
        self.known: set = set()
        self.tensors: list[Tensor] = []  # their shapes, whether they require gradients, and their hooks
        self._plain: tuple[list[dict], list[str]] = [], []
        self._before: list = [None]  # never what `values` returns
        self._seen: list | None = None  # what `_objects` gave then, where nothing else can have changed if it gives the same
        self._parts: list[tuple] = []  # what the tensors had
        self._edges: list[AccumulateGrad] = []  # theirs: hooks on these matter
        self._tokens: dict[tuple, int] = {}  # short for what `values` returned
        self._token = -1

    def add_modules(self, modules: Iterable[Module], elsewhere: Set = frozenset()) -> None:
        """What lies plainly in modules and in those inside of them."""
        for top in modules:
            for m in top.modules():
                if self._new(("module", id(m)), elsewhere):
                    self.modules += m.__dict__, m._parameters, m._buffers, m._modules
                    self.hooks += [getattr(m, name) for name in HOOKS]
        if self.modules:
            self.hooks += [d for d in (getattr(everywhere, f"_global{name}") for name in HOOKS) if self._new(("module", id(d)), elsewhere)]

    def add_tensors(self, tensors: Iterable[Tensor], elsewhere: Set = frozenset()) -> None:
        self.tensors += [t for t in tensors if self._new(("tensor", id(t)), elsewhere)]

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
            self.attributes.append((where[0], where[1], MISSING))
        else:
            self.contents.append(where[0])

    def _new(self, place: tuple, elsewhere: Set) -> bool:
        if place in self.known or place in elsewhere:
            return False
        self.known.add(place)
        self._seen = None
        return True

    def _objects(self) -> Iterator[Any]:
        """What is in the places now, object by object, but for what tensors and hooks have: all from C, since every call asks."""
        return itertools.chain(map(len, self.modules), map(dict.get, *self._plain), map(dict.get, self.owners, self.names), map(_CONTENTS, self.cells),
                               itertools.starmap(getattr, self.attributes))

    def values(self) -> list:
        """What is in the places now, but for the contents of containers."""
        now = [*map(len, self.modules), *map(len, self.hooks), *map(dict.get, *self._plain), *map(dict.get, self.owners, self.names)]
        now += map(held_by, self.cells)
        now += itertools.starmap(getattr, self.attributes)
        now += map(_AVAL, self.tensors)
        now += map(_LAYOUT, self.tensors)
        for e in map(_EDGE, self.tensors):
            if e is not None:
                after = getattr(e, "post_accumulate", None)
                now += e.hooks and _count_of(e.hooks), after and len(after)
            else:
                now.append(True)
        return now

    def _unchanged(self) -> bool:
        if self._seen is None:
            return False
        try:
            return (all(map(operator.is_, self._objects(), self._seen)) and list(map(_PARTS, self.tensors)) == self._parts and not any(self.hooks)
                    and not any(map(_HOOKS, self._edges)) and not any(map(_POST, self._edges)))
        except ValueError:  # a closure variable has no value any more
            return False

    def key(self) -> Hashable:
        if not self._unchanged():
            self._look()
        return (self._token, tuple(map(content, self.contents))) if self.contents else self._token

    def _look(self) -> None:
        """A token for what is in the places now."""
        now = self.values()
        if now[:len(self.modules)] != self._before[:len(self.modules)]:
            plain = [(d, k) for d in self.modules for k, v in d.items() if v.__class__ in PLAIN or isinstance(v, (Tensor, Module))]
            self._plain = [d for d, _ in plain], [k for _, k in plain]
            now = self.values()
        if len(now) != len(self._before) or not all(map(operator.is_, now, self._before)):
            self._before = now
            key = tuple(map(sameness, now))
            if len(self._tokens) > MOST_TOKENS:
                self._tokens.clear()
            self._token = self._tokens.setdefault(key, next(_count))
        self._seen, self._parts = None, list(map(_PARTS, self.tensors))
        self._edges = [e for _, _, e in self._parts if e is not None]
        if not any(self.hooks) and all(e.__class__ is AccumulateGrad and e.hooks is None and e.post_accumulate is None for e in self._edges):
            with contextlib.suppress(ValueError):
                self._seen = list(self._objects())

    def objects(self) -> Iterator[Any]:
        """What the key names by identity: nothing else may get these addresses while the key is in use."""
        yield from self._before
        yield from self.contents


def identity(place: tuple) -> tuple:
    """A place's key: objects by identity, names by value."""
    return tuple([x if isinstance(x, str) else id(x) for x in place])


def held_at(place: tuple) -> Any:
    """What a place holds; MISSING where there is nothing."""
    kind, *where = place
    if kind == "name":
        return where[0].get(where[1], MISSING)
    if kind == "cell":
        return held_by(where[0])
    return getattr(*where, MISSING) if kind == "attribute" else where[0]


def value_at(place: tuple) -> Any:
    """What tells whether a place changed."""
    x = held_at(place)
    return content(x) if place[0] == "content" else sameness(x)


def tensors_at(place: tuple) -> list[Tensor]:
    """The tensors that a place holds, in its container if it is one."""
    x = held_at(place)
    held = [x] if place[0] != "content" or not isinstance(x, CONTAINERS) else list(x.values() if isinstance(x, dict) else x)
    return [t for t in held if isinstance(t, Tensor)]
