"""t[index] and t[index] = value where the tensor dispatches, or an index does: views, then one `aten.index` with the indices as they were given.

An index's class sees it before anybody asks which positions it has; masks stay masks.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _leaves
from .._core.registry import OPS
from .._ops import aten
from .._plainly import dispatching
from .._public import FUNCTIONS
from .._tensor import Tensor
from ..ops.aliases import ALIAS
from ..ops.index_parsing import MASKS
from ..ops.indexing import _basic, _check_mask
from .derivatives import zeros
from .functions import run_as

_WHOLE = slice(None)


def _dispatching(x: Any) -> bool:
    return isinstance(x, Tensor) and x._dispatches


def _concerns(self: Any, index: Any) -> bool:
    return not dispatching.disabled and (_dispatching(self) or any(map(_dispatching, index if isinstance(index, (tuple, list)) else (index,))))


def reading(f: Callable) -> Callable:
    """`Tensor.__getitem__` f, for tensors that may dispatch."""
    @functools.wraps(f)
    def run(self: Tensor, index: Any) -> Any:
        if not _concerns(self, index):
            return f(self, index)
        items = index if isinstance(index, tuple) else (index,)
        before, dispatching.open_ended = dispatching.open_ended, any(i.__class__ is slice and i.stop is None for i in items)
        try:
            return read(self, index, items)
        finally:
            dispatching.open_ended = before

    def read(self: Tensor, index: Any, items: tuple) -> Any:
        if self._dispatches and all(i is Ellipsis or i.__class__ is slice and i == _WHOLE for i in items) and sum(i is not Ellipsis for i in items) <= self.ndim:
            if len(items) == 1 and items[0] is not Ellipsis:
                return self._view(OPS["slice"], (0, 0, self.shape[0], 1))
            return self._view(ALIAS, ())
        if self._dispatches and not any(_is_advanced(i) for i in items):
            return f(self, index)
        t, advanced = _basic(self, index)
        return index_by(t, _places(t, advanced)) if advanced else t
    return run


def _is_advanced(i: Any) -> bool:
    return not (i is None or i is Ellipsis or i.__class__ is int or i.__class__ is slice)


def writing(self: Tensor, index: Any, value: Any) -> None:
    """self[index] = value: a view that is written, or elements by index tensors."""
    if not isinstance(value, Tensor):
        value = FUNCTIONS["scalar_tensor"](value, dtype=self.dtype, device=self.device)
    items = index if isinstance(index, tuple) else (index,)
    if not any(_is_advanced(i) for i in items):
        _fill(self[index], value)
        return
    t, advanced = _basic(self, index, alias=False)
    if advanced:
        t.index_put_(_places(t, advanced), value)
    else:
        _fill(t, value)


def _fill(t: Tensor, value: Tensor) -> None:
    if t.ndim and not value.ndim:
        t.fill_(value)
    else:
        t.copy_(value)


def _places(t: Tensor, advanced: dict[int, Tensor]) -> list[Tensor | None]:
    """The list that `aten.index` takes: an index for its dimension (a mask for several), None where there is none."""
    places: list[Tensor | None] = []
    dim = 0
    for d in sorted(advanced):
        i = advanced[d]
        places += [None] * (d - dim)
        places.append(i)
        dim = d + 1
        if i.dtype in MASKS:
            _check_mask(t, d, i)
            dim = d + i.ndim
    return places


def index_by(t: Tensor, places: list[Tensor | None]) -> Tensor:
    """`aten.index`, with its derivative."""
    filled = _filling(places)

    def back(needs: tuple, saved: tuple, g: Tensor) -> list:
        start = zeros(g, list(saved[0].shape), dtype=g.dtype, layout=g.layout, device=g.device)
        return [_add_at(start, g, places, saved[1:]), *[None] * (len(saved) - 1)]
    return run_as("Index", back, lambda t, *index: _leaves.hand_on(aten.index.Tensor, t, filled(index)), t, *_given(places))


def _add_at(start: Tensor, g: Tensor, places: list, index: tuple) -> Tensor:
    filled = _filling(places)

    def back(needs: tuple, saved: tuple, g: Tensor) -> list:
        return [g, index_by(g, filled(saved[2:])), *[None] * len(index)]
    return run_as("IndexPut", back, lambda t, g, *index: _leaves.hand_on(aten.index_put.default, t, filled(index), g, True), start, g, *index)


def _given(places: list) -> list:
    return [i for i in places if i is not None]


def _filling(places: list) -> Callable:
    """What puts tensors into the places that are not None."""
    def filled(index: Any) -> list:
        given = iter(index)
        return [None if i is None else next(given) for i in places]
    return filled
