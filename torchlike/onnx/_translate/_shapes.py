"""Views, and what else moves elements about; what creates them."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._examples.sizes import Dyn, product
from .._graph import LAST, Graph, Var
from ._table import NAMES, translates, whole


@translates("view")
def _view(g: Graph, x: Var, shape: tuple) -> Var:
    return g.reshape(x, shape)


@translates("alias")
def _alias(g: Graph, x: Var) -> Var:
    return x


@translates("permute")
def _permute(g: Graph, x: Var, dims: tuple) -> Var:
    return g.transpose(x, dims)


@translates("transpose")
def _transpose(g: Graph, x: Var, a: int, b: int) -> Var:
    return g.moved(x, a, b)


@translates("t")
def _t(g: Graph, x: Var) -> Var:
    return g.transpose(x, range(x.ndim)[::-1])


@translates("unsqueeze")
def _unsqueeze(g: Graph, x: Var, d: int) -> Var:
    return g.op("Unsqueeze", x, [d])


@translates("squeeze", "squeeze_dim", "squeeze_dims", called="squeeze")
def _squeeze(g: Graph, x: Var, dims: tuple) -> Var:
    dims = [d for d in dims if x.shape[d] == 1]
    return g.op("Squeeze", x, dims) if dims else x


NAMES["squeeze"] = "squeeze"


@translates("only")
def _only(g: Graph, x: Var) -> Var:
    return g.op("Squeeze", x, [0])


@translates("expand")
def _expand(g: Graph, x: Var, shape: tuple) -> Var:
    if x.shape == tuple(shape):
        return x
    have = (1,) * (len(shape) - x.ndim) + x.shape
    return g.op("Expand", x, g.sizes([1 if n == m else n for n, m in zip(shape, have)]))


def _span(g: Graph, x: Var, dim: int, start: Any, n: Any, step: int = 1) -> Var:
    """n elements from start along dim."""
    return g.slice(x, dim, start, start + (n - 1) * step + 1, step)


@translates("slice", "split")
def _slice(g: Graph, x: Var, dim: int, start: Any, n: Any, step: int) -> Var:
    return _span(g, x, dim, start, n, step)


@whole("chunk", "split", "split_with_sizes", "tensor_split")
def _split(g: Graph, x: Var, sections: Any, dim: int, *rest: Any) -> Any:
    dim %= x.ndim
    sizes = [shape[dim] for shape, _ in g.results]
    if len(sizes) < 2 or 0 in sizes:
        return NotImplemented
    if all(n == sizes[0] for n in sizes) and g.opset >= 18:
        return g.op("Split", x, n=len(sizes), axis=dim, num_outputs=len(sizes))
    return g.op("Split", x, g.sizes(sizes), n=len(sizes), axis=dim)


@translates("slice_at", called="slice_1")
def _slice_at(g: Graph, x: Var, start: Var, dim: int, n: Any) -> Var:
    first = g.op("Reshape", start, [1])
    return g.op("Slice", x, first, g.op("Add", first, g.size(n)), [dim])


def _position(g: Graph, x: Var, i: Any, dim: int) -> Var:
    if isinstance(i, Var):
        return i
    if x.shape is not None and isinstance(x.shape[dim], Dyn) and x.shape[dim] - 1 == i:
        return g.const(np.asarray(-1))
    return g.op("Squeeze", g.size(i), [0]) if isinstance(i, Dyn) else g.const(np.asarray(i))


@translates("select", "unbind", called="select")
def _select(g: Graph, x: Var, dim: int, i: Any) -> Var:
    return g.op("Gather", x, _position(g, x, i, dim), axis=dim)


@translates("select_at", called="select")
def _select_at(g: Graph, x: Var, i: Any, dim: int) -> Var:
    return _select(g, x, dim, i)


@translates("part_select", "part_slice", called="slice_1")
def _part(g: Graph, x: Var, *rest: Any) -> Var:
    """Several ints and slices at once."""
    *numbers, part = rest
    data, shape = iter(numbers), list(x.shape)
    cuts, picks = [], []
    for dim, start, n in part:
        start = next(data) if start is None else start
        if not isinstance(n, Dyn) and n < 0:
            picks.append((dim, start))
        else:
            cuts.append((dim, start, start + n))
    cuts = [c for c in cuts if c[1] != 0 or c[2] != shape[c[0]]]
    if cuts:
        ends = [LAST if shape[d] == end else end for d, _, end in cuts]
        x = g.op("Slice", x, g.sizes([s for _, s, _ in cuts]), g.sizes(ends), [d for d, _, _ in cuts])
        x.shape = tuple(shape)
    for dim, i in reversed(picks):
        x = g.op("Gather", x, _position(g, x, i, dim), axis=dim)
    return x


@translates("diagonal")
def _diagonal(g: Graph, x: Var, offset: int, d1: int, d2: int) -> Var:
    if isinstance(x.shape[d1], Dyn) or isinstance(x.shape[d2], Dyn) or isinstance(offset, Dyn):
        return NotImplemented
    n = g.results[0][0][-1]
    order = [d for d in range(x.ndim) if d not in (d1, d2)]
    x = g.transpose(x, [d1, d2, *order])
    at = np.arange(n)[:, None] + np.asarray([max(-offset, 0), max(offset, 0)])
    return g.transpose(g.op("GatherND", x, g.const(at)), [*range(1, len(order) + 1), 0])


@translates("unfold")
def _unfold(g: Graph, x: Var, dim: int, size: int, step: int) -> Var:
    n = g.results[0][0][dim]
    at = g.const((np.arange(n) * step)[:, None] + np.arange(size))
    made = g.op("Gather", x, at, axis=dim)  # (..., n, size, ...)
    order = list(range(x.ndim + 1))
    order.append(order.pop(dim + 1))
    return g.transpose(made, order)


# -- writing a part: the new whole ---------------------------------------------------------------------------------------------


def _scattered(g: Graph, base: Var, new: Var, dim: int, start: Any, n: Any, step: int = 1) -> Var:
    """base with `n` slices along dim replaced by new."""
    if step == 1:
        size, end = base.shape[dim], start + n
        parts = [g.slice(base, dim, 0, start)] if start != 0 else []
        parts.append(new)
        if end != size:
            parts.append(g.slice(base, dim, end, LAST))
        return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=dim)
    at = (np.arange(n) * step + start)[:, None]
    order = list(range(base.ndim))
    order.insert(0, order.pop(dim))
    made = g.op("ScatterND", g.transpose(base, order), g.const(at), g.transpose(new, order))
    return g.transpose(made, np.argsort(order).tolist())


@translates("slice_put", "split_put", called="slice_scatter")
def _slice_put(g: Graph, base: Var, new: Var, dim: int, start: Any, n: Any, step: int) -> Var:
    return _scattered(g, base, new, dim, start, n, step)


@translates("select_put", "unbind_put", called="select_scatter")
def _select_put(g: Graph, base: Var, new: Var, dim: int, i: Any) -> Var:
    return _scattered(g, base, g.op("Unsqueeze", new, [dim]), dim, i, 1)


@translates("part_slice_put", "part_select_put", called="slice_scatter")
def _part_put(g: Graph, base: Var, new: Var, *rest: Any) -> Var:
    """Outside in: the slices of the first dimension, of the second of those, ..., and back."""
    *numbers, part = rest
    data = iter(numbers)
    part = [(dim, next(data) if start is None else start, n) for dim, start, n in part]
    lost = [dim for dim, _, n in part if not isinstance(n, Dyn) and n < 0]
    for dim in lost:
        new = g.op("Unsqueeze", new, [dim])
    levels = [base]
    for dim, start, n in part[:-1]:
        n = 1 if dim in lost else n
        x = g.slice(levels[-1], dim, start, start + n)
        x.shape = (*levels[-1].shape[:dim], n, *levels[-1].shape[dim + 1:])
        levels.append(x)
    for x, (dim, start, n) in zip(reversed(levels), reversed(part)):
        new = _scattered(g, x, new, dim, start, 1 if dim in lost else n)
    return new


@translates("view_put")
def _view_put(g: Graph, base: Var, new: Var, shape: tuple) -> Var:
    return g.reshape(new, base.shape)


@translates("permute_put")
def _permute_put(g: Graph, base: Var, new: Var, dims: tuple) -> Var:
    return g.transpose(new, np.argsort(dims).tolist())


@translates("transpose_put")
def _transpose_put(g: Graph, base: Var, new: Var, a: int, b: int) -> Var:
    return g.moved(new, a, b)


@translates("t_put")
def _t_put(g: Graph, base: Var, new: Var) -> Var:
    return g.transpose(new, range(base.ndim)[::-1])


@translates("unsqueeze_put", "squeeze_put", "squeeze_dim_put", "squeeze_dims_put")
def _same_elements(g: Graph, base: Var, new: Var, dims: Any = None) -> Var:
    return g.reshape(new, base.shape)


# -- joining and repeating -------------------------------------------------------------------------------------------------------


@translates("cat")
def _cat(g: Graph, *args: Any) -> Var:
    *xs, dim = args
    dtype = g.results[0][1]
    xs = [g.cast(x, dtype) for x in xs if x.shape != (0,) or len(args) == 2]
    return xs[0] if len(xs) == 1 else g.op("Concat", *xs, axis=dim)


@translates("stack")
def _stack(g: Graph, *args: Any) -> Var:
    *xs, dim = args
    xs = [g.op("Unsqueeze", g.cast(x, g.results[0][1]), [dim]) for x in xs]
    return xs[0] if len(xs) == 1 else g.op("Concat", *xs, axis=dim)


@translates("repeat")
def _repeat(g: Graph, x: Var, reps: tuple) -> Var:
    if len(reps) > x.ndim:
        x = g.op("Unsqueeze", x, list(range(len(reps) - x.ndim)))
    return g.op("Tile", x, g.sizes(reps))


@translates("flip")
def _flip(g: Graph, x: Var, dims: tuple) -> Var:
    n = len(dims)
    return g.op("Slice", x, [-1] * n, [-LAST] * n, list(dims), [-1] * n) if n else x


@translates("roll")
def _roll(g: Graph, x: Var, shifts: tuple, dims: tuple) -> Var:
    if not dims:
        return g.reshape(_rolled(g, g.op("Reshape", x, [-1]), shifts[0], 0, product(x.shape)), x.shape)
    for shift, d in zip(shifts, dims):
        x = _rolled(g, x, shift, d, x.shape[d] if x.shape else g.results[0][0][d])
    return x


def _rolled(g: Graph, x: Var, shift: Any, d: int, n: Any) -> Var:
    shift = shift % n
    if shift == 0:
        return x
    made = g.op("Concat", g.op("Slice", x, g.size(-1 * shift), [LAST], [d]), g.op("Slice", x, [0], g.size(-1 * shift), [d]), axis=d)
    made.shape = g.results[0][0]
    return made




def _trilu(name: str, upper: int) -> None:
    @translates(name)
    def run(g: Graph, x: Var, diagonal: Any) -> Var:
        at = None if diagonal == 0 else g.op("Squeeze", g.size(diagonal), [0]) if isinstance(diagonal, Dyn) else g.const(np.asarray(diagonal))
        if x.dtype is dt.bool_:
            return g.cast(g.op("Trilu", g.cast(x, dt.int32), at, upper=upper), dt.bool_, dt.int32)
        return g.op("Trilu", x, at, upper=upper)


_trilu("tril", 0)
_trilu("triu", 1)


# -- creation ------------------------------------------------------------------------------------------------------------------------


@translates("constant", called="full")
def _full(g: Graph, value: Any, shape: tuple, dtype: dt.dtype, device: Any) -> Var:
    value = g.cast(value, dtype)
    return g.op("Expand", value, g.sizes(shape)) if shape else value


@translates("arange")
def _arange(g: Graph, start: Any, step: Any, n: Any, dtype: dt.dtype, device: Any) -> Var:
    whole = g.op("Range", g.const(np.asarray(0)), g.op("Squeeze", g.size(n), [0]), g.const(np.asarray(1)))
    made = g.cast(whole, dtype, dt.int64)
    made = made if step == 1 else g.op("Mul", made, g.scalar(step, dtype))
    return made if start == 0 else g.op("Add", made, g.scalar(start, dtype))


@translates("linspace")
def _linspace(g: Graph, start: Any, end: Any, steps: Any, dtype: dt.dtype, device: Any) -> Var:
    whole = g.cast(g.op("Range", g.const(np.asarray(0)), g.op("Squeeze", g.size(steps), [0]), g.const(np.asarray(1))), dtype, dt.int64)
    last = g.cast(g.op("Squeeze", g.size(steps - 1), [0]), dtype, dt.int64)
    start, end = g.scalar(start, dtype), g.scalar(end, dtype)
    return g.op("Add", start, g.op("Mul", whole, g.op("Div", g.op("Sub", end, start), last)))


@translates("eye")
def _eye(g: Graph, n: Any, m: Any, dtype: dt.dtype, device: Any) -> Var:
    rows, columns = (g.op("Range", g.const(np.asarray(0)), g.op("Squeeze", g.size(k), [0]), g.const(np.asarray(1))) for k in (n, m))
    return g.cast(g.op("Equal", g.op("Unsqueeze", rows, [1]), columns), dtype, dt.bool_)


@whole("one_hot", when=lambda x, num_classes=-1: num_classes != -1)
def _one_hot(g: Graph, x: Var, n: int) -> Var:
    return g.op("OneHot", x, g.const(np.asarray(n)), g.const(np.asarray([0, 1])), axis=-1)
