"""Reading and writing by tensors of indices, and by masks."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._examples.sizes import Dyn, product
from ..._tensor import Tensor
from .._graph import Graph, Var
from ._table import translates, whole


@translates("embedding")
def _embedding(g: Graph, weight: Var, index: Var, padding: Any) -> Var:
    return g.op("Gather", weight, index)


@translates("gather")
def _gather(g: Graph, x: Var, index: Var, dim: int) -> Var:
    return g.op("GatherElements", x, index, axis=dim)


@translates("index_select_scalar", called="index_select")
def _index_select_scalar(g: Graph, x: Var, index: Var) -> Var:
    return x


@translates("wrap_index")
def _wrap(g: Graph, x: Var, n: Any) -> Var:
    n = g.scalar(n, x.dtype)
    return g.op("Where", g.op("Less", x, g.scalar(0, x.dtype)), g.op("Add", x, n), x)


def _rows(g: Graph, index: tuple, shape: tuple) -> Var:
    """Index arrays as one array of positions: (..., number of arrays)."""
    full = []
    for i in index:
        i = g.cast(i, dt.int64)
        same = tuple(i.shape) == tuple(shape)
        full.append(g.op("Unsqueeze", i if same else g.op("Expand", i, g.sizes(shape)), [len(shape)]))
    return full[0] if len(full) == 1 else g.op("Concat", *full, axis=-1)


def _broadcast(index: tuple) -> tuple:
    n = max(i.ndim for i in index)
    columns = zip(*[(1,) * (n - i.ndim) + tuple(i.shape) for i in index])
    return tuple(next((s for s in column if isinstance(s, Dyn) or s != 1), 1) for column in columns)


@translates("index", "index_wide")
def _index(g: Graph, x: Var, *rest: Any) -> Var:
    *index, dims = rest
    if len(index) == 1:
        return g.op("Gather", x, g.cast(index[0], dt.int64), axis=dims[0])
    others = [d for d in range(x.ndim) if d not in dims]
    shape = _broadcast(index)
    made = g.op("GatherND", g.transpose(x, [*dims, *others]), _rows(g, index, shape))
    if list(dims) != list(range(dims[0], dims[-1] + 1)) or dims[0] == 0:
        return made
    n = len(shape)  # the indexed dimensions are neighbours: theirs is the place of the first
    return g.transpose(made, [*range(n, n + dims[0]), *range(n), *range(n + dims[0], n + len(others))])


@translates("index_put")
def _index_put(g: Graph, x: Var, value: Var, *rest: Any) -> Var:
    *index, dims, accumulate = rest
    others = [d for d in range(x.ndim) if d not in dims]
    order = [*dims, *others]
    shape = _broadcast(index)
    kept = tuple(x.shape[d] for d in others)
    value = g.cast(value, x.dtype)
    if list(dims) == list(range(dims[0], dims[-1] + 1)) and dims[0] != 0 and value.ndim:
        whole_shape = (*kept[:dims[0]], *shape, *kept[dims[0]:])
        value = value if value.shape == whole_shape else g.op("Expand", value, g.sizes(whole_shape))
        n, lead = len(shape), dims[0]
        value = g.transpose(value, [*range(lead, lead + n), *range(lead), *range(lead + n, len(whole_shape))])
    elif value.shape != (*shape, *kept):
        value = g.op("Expand", value, g.sizes((*shape, *kept)))
    made = g.op("ScatterND", g.transpose(x, order), _rows(g, index, shape), value, reduction="add" if accumulate else None)
    return g.transpose(made, np.argsort(order).tolist())


@translates("index_put_mask")
def _index_put_mask(g: Graph, x: Var, mask: Var, value: Var, dim: int) -> Var:
    shape = (*mask.shape, *(1,) * (x.ndim - dim - mask.ndim))
    return g.op("Where", mask if shape == mask.shape else g.op("Reshape", mask, g.sizes(shape)), g.cast(value, x.dtype), x)


_REDUCTIONS = {"set": None, "add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _source(g: Graph, src: Any, index: Var, dtype: dt.dtype) -> Var:
    src = g.cast(src, dtype)
    if src.shape == index.shape:
        return src
    if not src.shape:
        return g.op("Expand", src, g.sizes(index.shape))
    return g.op("Slice", src, [0] * src.ndim, g.sizes(index.shape))


@translates("scatter")
def _scatter(g: Graph, x: Var, index: Var, src: Any, dim: int, mode: str) -> Var:
    return g.op("ScatterElements", x, index, _source(g, src, index, x.dtype), axis=dim, reduction=_REDUCTIONS[mode])


@translates("scatter_reduce", "index_reduce")
def _scatter_reduce(g: Graph, x: Var, index: Var, src: Any, dim: int, mode: str, include_self: bool) -> Var:
    if mode not in _REDUCTIONS or not include_self:
        return NotImplemented
    return g.op("ScatterElements", x, index, _source(g, src, index, x.dtype), axis=dim, reduction=_REDUCTIONS[mode])


@translates("index_write", called="index_add")
def _index_write(g: Graph, x: Var, index: Var, src: Any, scale: Any, dim: int, mode: str) -> Var:
    if mode not in _REDUCTIONS:
        return NotImplemented
    order = list(range(x.ndim))
    order.insert(0, order.pop(dim))
    src = g.cast(src, x.dtype)
    if not isinstance(scale, (int, float)) or scale != 1:
        src = g.op("Mul", src, g.scalar(scale, x.dtype)) if scale is not None else src
    shape = (*index.shape, *(n for d, n in enumerate(x.shape) if d != dim))
    src = g.transpose(src, order) if src.shape else g.op("Expand", src, g.sizes(shape))
    made = g.op("ScatterND", g.transpose(x, order), g.op("Unsqueeze", g.cast(index, dt.int64), [1]), src, reduction=_REDUCTIONS[mode])
    return g.transpose(made, np.argsort(order).tolist())


# -- masks: how many elements they choose depends on data ------------------------------------------------------------------------------


def _data(*args: Any, **kwargs: Any) -> str:
    return "data"


@whole("nonzero", "argwhere", when=lambda x, *, as_tuple=False: "" if as_tuple else "data")
def _nonzero(g: Graph, x: Var, *rest: Any) -> Var:
    return g.transpose(g.op("NonZero", x), [1, 0])


@whole("masked_select", when=_data)
def _masked_select(g: Graph, x: Var, mask: Var) -> Var:
    shape = _broadcast((x, mask))
    x, mask = (t if t.shape == shape else g.op("Expand", t, g.sizes(shape)) for t in (x, mask))
    return g.op("Compress", g.op("Reshape", x, [-1]), g.op("Reshape", mask, [-1]), axis=0)


def _one_mask(x: Any, index: Any) -> str:
    return "data" if isinstance(index, Tensor) and index.dtype is dt.bool_ and index.ndim else ""


@whole("__getitem__", when=_one_mask)
def _getitem(g: Graph, x: Var, mask: Var) -> Var:
    if mask.ndim == 1:
        return g.op("Compress", x, mask, axis=0)
    rest = x.shape[mask.ndim:]
    rows = x if mask.ndim == 1 else g.reshape(x, (product(x.shape[:mask.ndim]), *rest))
    return g.op("Compress", rows, g.op("Reshape", mask, [-1]), axis=0)


