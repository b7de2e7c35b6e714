"""Reductions, scans and sorting."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import dtype as dt
from .._graph import Graph, Var, element_type
from ._layers import alone
from ._table import translates


def _reduced(g: Graph, kind: str, x: Var, dims: tuple, keepdim: bool) -> Var:
    made = x if not x.shape else g.op(kind, x, None if len(dims) == x.ndim else list(dims), keepdims=int(keepdim))
    made.dtype = x.dtype
    return made


def _with_type(name: str, kind: str) -> None:
    @translates(name)
    def run(g: Graph, x: Var, dims: tuple, keepdim: bool, dtype: dt.dtype) -> Var:
        return _reduced(g, kind, g.cast(x, g.results[0][1]), dims, keepdim)


for _name in ("sum", "mean", "prod"):
    _with_type(_name, f"Reduce{_name.capitalize()}")
    _with_type(f"{_name}_dim", f"Reduce{_name.capitalize()}")


def _extreme(name: str, kind: str) -> None:
    @translates(name)
    def run(g: Graph, x: Var, dims: tuple, keepdim: bool) -> Var:
        if x.dtype is dt.bool_:
            return g.cast(_reduced(g, kind, g.cast(x, dt.int32), dims, keepdim), dt.bool_, dt.int32)
        return _reduced(g, kind, x, dims, keepdim)


for _name in ("amax", "max_of_all"):
    _extreme(_name, "ReduceMax")
for _name in ("amin", "min_of_all"):
    _extreme(_name, "ReduceMin")


@translates("logsumexp")
def _logsumexp(g: Graph, x: Var, dims: tuple, keepdim: bool) -> Var:
    return _reduced(g, "ReduceLogSumExp", x, dims, keepdim)


@translates("linalg_vector_norm")
def _norm(g: Graph, x: Var, p: float, dims: tuple, keepdim: bool) -> Var:
    if p in (1, 2):
        return _reduced(g, f"ReduceL{int(p)}", x, dims, keepdim)
    size = g.op("Abs", x)
    size.shape, size.dtype = x.shape, x.dtype
    if p in (float("inf"), -float("inf")):
        return _reduced(g, "ReduceMax" if p > 0 else "ReduceMin", size, dims, keepdim)
    powers = g.op("Pow", size, g.scalar(p, x.dtype))
    powers.shape, powers.dtype = x.shape, x.dtype
    return g.op("Pow", _reduced(g, "ReduceSum", powers, dims, keepdim), g.scalar(1 / p, x.dtype))


def _lengths(g: Graph, ends: tuple[Var, Var], shape: tuple, p: float) -> Var:
    difference = g.op("Sub", *ends)
    difference.shape, difference.dtype = shape, ends[0].dtype
    return _norm(g, difference, p, (len(shape) - 1,), False)


@translates("cdist")
def _cdist(g: Graph, a: Var, b: Var, p: float) -> Var:
    ends = g.op("Unsqueeze", a, [a.ndim - 1]), g.op("Unsqueeze", b, [b.ndim - 2])
    for end, x in zip(ends, (a, b)):
        end.dtype = x.dtype
    return _lengths(g, ends, (*a.shape[:-1], *b.shape[-2:]) if a.ndim >= b.ndim else (*b.shape[:-2], *a.shape[-2:-1], *b.shape[-2:]), p)


@translates("pdist")
def _pdist(g: Graph, x: Var, p: float) -> Var:
    ends = tuple(g.op("Gather", x, g.const(rows), axis=0) for rows in np.triu_indices(x.shape[0], 1))
    for end in ends:
        end.dtype = x.dtype
    return _lengths(g, ends, (None, x.shape[1]), p)


def _variance(g: Graph, x: Var, dims: tuple, keepdim: bool, correction: Any) -> Var:
    axes = None if len(dims) == x.ndim else list(dims)
    centered = g.op("Sub", x, g.op("ReduceMean", x, axes, keepdims=1))
    n = g.count(x, dims) - correction
    squares = g.op("Mul", centered, centered)
    return g.op("Div", g.op("ReduceSum", squares, axes, keepdims=int(keepdim)), g.scalar(n, x.dtype))


@translates("var")
def _var(g: Graph, x: Var, dims: tuple, keepdim: bool, correction: Any) -> Var:
    return _variance(g, x, dims, keepdim, correction)


@translates("std")
def _std(g: Graph, x: Var, dims: tuple, keepdim: bool, correction: Any) -> Var:
    return g.op("Sqrt", _variance(g, x, dims, keepdim, correction))


@translates("any")
def _any(g: Graph, x: Var, dims: tuple, keepdim: bool) -> Var:
    return g.cast(_reduced(g, "ReduceMax", g.cast(g.cast(x, dt.bool_), dt.int32), dims, keepdim), dt.bool_, dt.int32)


@translates("all")
def _all(g: Graph, x: Var, dims: tuple, keepdim: bool) -> Var:
    return g.cast(_reduced(g, "ReduceMin", g.cast(g.cast(x, dt.bool_), dt.int32), dims, keepdim), dt.bool_, dt.int32)


def _place(name: str, kind: str) -> None:
    @translates(name)
    def run(g: Graph, x: Var, dim: int | None, keepdim: bool) -> Var:
        x = g.cast(x, dt.int32) if x.dtype is dt.bool_ else x
        if dim is None:
            made = g.op(kind, g.op("Reshape", x, [-1]), axis=0, keepdims=0)
            return g.reshape(made, g.results[0][0]) if keepdim else made
        return g.op(kind, x, axis=dim, keepdims=int(keepdim))


_place("argmax", "ArgMax")
_place("argmin", "ArgMin")


def _along(name: str, kind: str) -> None:
    @translates(name)
    def run(g: Graph, x: Var, dim: int, keepdim: bool) -> tuple[Var, Var]:
        return g.op(f"Reduce{kind}", x, [dim], keepdims=int(keepdim)), g.op(f"Arg{kind}", x, axis=dim, keepdims=int(keepdim))


_along("max_dim", "Max")
_along("min_dim", "Min")


# -- scans and sorting -----------------------------------------------------------------------------------------------------------


@translates("cumsum")
def _cumsum(g: Graph, x: Var, dim: int, dtype: dt.dtype) -> Var:
    return g.op("CumSum", g.cast(x, g.results[0][1]), g.const(np.asarray(dim))) if x.shape else g.cast(x, dtype)


@translates("topk")
def _topk(g: Graph, x: Var, k: Any, dim: int, largest: bool) -> tuple[Var, Var]:
    return g.op("TopK", x, g.size(k), n=2, axis=dim, largest=int(largest), sorted=1)


@translates("sort")
def _sort(g: Graph, x: Var, dim: int, descending: bool) -> tuple[Var, Var]:
    return g.op("TopK", x, g.size(x.shape[dim]), n=2, axis=dim, largest=int(descending), sorted=1)


@translates("argsort")
def _argsort(g: Graph, x: Var, dim: int, descending: bool) -> Var:
    return _sort(g, x, dim, descending)[1]


@translates("kthvalue")
def _kthvalue(g: Graph, x: Var, k: Any, dim: int, keepdim: bool) -> tuple[Var, Var]:
    made = [g.op("Slice", part, [-1], [2 ** 62], [dim]) for part in g.op("TopK", x, g.size(k), n=2, axis=dim, largest=0, sorted=1)]
    return tuple(part if keepdim else g.op("Squeeze", part, [dim]) for part in made)


@translates("median_dim", called="median")
def _median_dim(g: Graph, x: Var, dim: int, keepdim: bool) -> tuple[Var, Var]:
    return _kthvalue(g, x, (x.shape[dim] + 1) // 2, dim, keepdim)


@translates("searchsorted", called="bucketize")
def _searchsorted(g: Graph, sequence: Var, values: Var, sorter: Var | None, right: bool, dtype: dt.dtype, out: dt.dtype) -> Var:
    """How many of a vector's numbers each value comes after."""
    if sorter is not None or sequence.ndim != 1:
        return NotImplemented
    before = g.op("LessOrEqual" if right else "Less", g.cast(sequence, dtype), g.op("Unsqueeze", g.cast(values, dtype), [values.ndim]))
    return g.op("ReduceSum", g.op("Cast", before, to=element_type(out)), [-1], keepdims=0)


# -- losses --------------------------------------------------------------------------------------------------------------------------


def _averaged(g: Graph, loss: Var, reduction: str) -> Var:
    return loss if reduction == "none" else g.op("ReduceMean" if reduction == "mean" else "ReduceSum", loss, keepdims=0)


@translates("mse_loss")
def _mse(g: Graph, x: Var, t: Var, reduction: str) -> Var:
    difference = g.op("Sub", x, t)
    return _averaged(g, g.op("Mul", difference, difference), reduction)


@translates("smooth_l1_loss", "huber_loss")
def _huber(g: Graph, x: Var, t: Var, beta: float, reduction: str) -> Var:
    far, half = g.scalar(float(beta), x.dtype), g.scalar(0.5, x.dtype)
    distance = g.op("Abs", g.op("Sub", x, t))
    near = g.op("Mul", g.op("Mul", distance, distance), half)
    away = g.op("Sub", distance, g.op("Mul", far, half))
    if g.called == "huber_loss":
        away = g.op("Mul", away, far)
    else:
        near = g.op("Div", near, far)
    return _averaged(g, g.op("Where", g.op("Less", distance, far), near, away), reduction)


@translates("nll_loss")
def _nll(g: Graph, x: Var, target: Var, weight: Var | None, ignore: int, reduction: str) -> Any:
    return alone(g, g.op("NegativeLogLikelihoodLoss", x, target, weight, reduction=reduction, ignore_index=ignore))


@translates("cross_entropy")
def _cross_entropy(g: Graph, x: Var, target: Var, weight: Var | None, ignore: int, reduction: str, smoothing: float) -> Any:
    if smoothing or target.dtype.category >= dt.FLOAT:
        return NotImplemented
    return alone(g, g.op("SoftmaxCrossEntropyLoss", x, target, weight, reduction=reduction, ignore_index=ignore))
