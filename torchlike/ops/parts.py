"""Ints and slices of several dimensions as one view: x[i, 0, 3], x[b, :, 2:5]."""
from __future__ import annotations

import numpy as np
from jax import lax

from .._core.layout import Layout
from .._core.registry import View
from .._tensor import Tensor
from .slicing import FEW, index_link, indexed, is_data, set_slice, slice_link, spread, written

# A part is told by (dim, start, n) for each indexed dimension, in order: n elements from start, or the one at start where n is -1.
# Starts that are data (see is_data) are numbers of the operation, in order, and None in the part.
Part = tuple[tuple[int, int | None, int], ...]


def _starts(part: Part, numbers: tuple) -> list:
    if not numbers:
        return [start for _, start, _ in part]
    data = iter(numbers)
    return [next(data) if start is None else start for _, start, _ in part]


def _index(ndim: int, *rest) -> tuple:
    *numbers, part = rest
    index: list = [slice(None)] * ndim
    for (dim, _, n), start in zip(part, _starts(part, numbers)):
        index[dim] = start if n < 0 else slice(start, start + n)
    return tuple(index)


def _window(shape: tuple, part: Part, numbers: tuple) -> tuple[list, list]:
    """Where the part begins in each dimension, and its sizes with those of 1 that it drops."""
    starts, sizes = [0] * len(shape), list(shape)
    for (dim, _, n), start in zip(part, _starts(part, numbers)):
        starts[dim], sizes[dim] = start, abs(n)
    return starts, sizes


def _take(xp, x, *rest):
    *numbers, part = rest
    if xp is np:
        return x[_index(x.ndim, *rest)]
    starts, sizes = _window(x.shape, part, numbers)
    out = lax.dynamic_slice(x, starts, sizes) if numbers else lax.slice(x, starts, [s + n for s, n in zip(starts, sizes)])
    return lax.squeeze(out, [dim for dim, _, n in part if n < 0])


def _put(xp, base, new, *rest):
    *numbers, part = rest
    if xp is np:
        return written(base, _index(base.ndim, *rest), new)
    starts, sizes = _window(base.shape, part, numbers)
    return set_slice(xp, base, new.reshape(sizes), starts)


def _spread(xp, base, new, part):
    starts, sizes = _window(base.shape, part, ())
    return spread(base, new.reshape(sizes), starts, [1] * base.ndim)


def _layout(a: Layout, *rest) -> Layout:
    *numbers, part = rest
    shape, strides, offset = list(a.shape), list(a.strides), a.offset
    for (dim, _, n), start in zip(reversed(part), reversed(_starts(part, numbers))):
        offset += start * strides[dim]
        if n < 0:
            del shape[dim], strides[dim]
        else:
            shape[dim] = n
    return Layout(tuple(shape), tuple(strides), offset)


# torch makes a view for each dimension; the last one's name is that of the node
_BY_LAST = {kind: indexed(View(f"part_{kind}", _take, put=_put, layout=_layout, spread=_spread, torch_name=f"{kind.capitalize()}Backward0"), _index)
            for kind in ("select", "slice")}
SELECT_PART = _BY_LAST["select"]


def link_of(t: Tensor, cuts: list[tuple[int, int, int, int]], data: bool = False) -> tuple | None:
    """How one view shows what cuts (dimension, start, length or -1, step) leave of t, as `Tensor._view` takes it, or None where that takes several;
    whether positions are data. Bounds are the caller's concern."""
    if len(cuts) == 1:
        (dim, start, n, step), = cuts
        return index_link(t, dim, start, data) if n < 0 else slice_link(t, dim, start, n, step)
    for cut in cuts:
        if cut[3] != 1:
            return None
    if not cuts:
        return None
    op = _BY_LAST["select" if cuts[-1][2] < 0 else "slice"]
    if not data and not is_data(t):
        return op, (tuple([cut[:3] for cut in cuts]),)
    numbers, part, shape = [], [], t._value.aval.shape
    for dim, start, n, _ in cuts:
        if n < 0 or start and shape[dim] - n > FEW:
            numbers.append(start)
            start = None
        part.append((dim, start, n))
    return op, (tuple(part),), *numbers
