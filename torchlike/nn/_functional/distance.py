"""Distances and similarities: cosine_similarity, pairwise_distance, cdist, pdist; and bilinear forms."""
from __future__ import annotations

import math

import numpy as np

from ..._arguments import as_dim, real
from ..._core import dtype as dt
from ..._core.arrays import sum_to
from ..._core.aval import broadcast_shapes
from ..._core.registry import Op
from ..._public import named, public
from ..._tensor import Tensor, apply
from ...ops.einsum import einsum
from ...ops.matmul import of_columns
from ...ops.norms import norm_of, norm_vjp, vector_norm
from .common import need, wide


@public(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim."""
    need(x1, "cosine_similarity", "x1", 1)
    need(x2, "cosine_similarity", "x2", 2)
    common = dt.promote_types(x1.dtype, x2.dtype)
    if common.category != dt.FLOAT:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.short}")
    eps = real(eps, "cosine_similarity", "eps")
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    x1, x2 = x1.to(common), x2.to(common)
    if x1.shape != x2.shape:
        from ...ops.joining import broadcast_tensors
        x1, x2 = broadcast_tensors(x1, x2)
    d = as_dim(dim, x1.ndim)
    return (_unit(x1, d, eps) * _unit(x2, d, eps)).sum(d)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    return x / vector_norm(x, 2, dim, True).clamp_min(eps)


@public(method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps over the last dimension."""
    need(x1, "pairwise_distance", "x1", 1)
    need(x2, "pairwise_distance", "x2", 2)
    p, eps = real(p, "pairwise_distance", "p"), real(eps, "pairwise_distance", "eps")
    return named(vector_norm(x1 - x2 + eps, p, -1, keepdim), "NormBackward1")


# -- all pairs ---------------------------------------------------------------------------------------------------------------


def _euclidean(xp, a, b):
    a, b = wide(a), wide(b)
    square = xp.sum(a * a, axis=-1, keepdims=True) + xp.expand_dims(xp.sum(b * b, axis=-1), -2) - 2 * xp.matmul(a, xp.swapaxes(b, -1, -2))
    return xp.sqrt(xp.maximum(square, np.zeros((), square.dtype)))


def _euclidean_vjp(xp, g, a, b, out, plan):
    zero = np.zeros((), out.dtype)
    ratio = xp.where(out == 0, zero, g / xp.where(out == 0, np.ones((), out.dtype), out))
    ga = a * xp.sum(ratio, axis=-1, keepdims=True) - xp.matmul(ratio, b)
    gb = b * xp.expand_dims(xp.sum(ratio, axis=-2), -1) - of_columns(xp, ratio, a, plan)
    return sum_to(xp, ga, a.shape), sum_to(xp, gb, b.shape)


_EUCLIDEAN = Op("euclidean_dist", _euclidean, vjp=_euclidean_vjp, torch_name="CdistBackward0",
                shape=lambda a, b: ((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-2]), a.dtype))
_MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": True, "donot_use_mm_for_euclid_dist": False}


@public(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """p-norm distances of all rows: (*, P, M) and (*, R, M) to (*, P, R). Large Euclidean ones go through a matrix product."""
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    p = real(p, "cdist", "p", 3)
    for t, name in ((x1, "X1"), (x2, "X2")):
        if t.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {t.ndim}D")
        if t.dtype.category != dt.FLOAT:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {t.dtype.short}")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.short} but found {x2.dtype.short}")
    by_product = _MODES[compute_mode]
    if p == 2 and (x1.shape[-2] > 25 or x2.shape[-2] > 25 if by_product is None else by_product):
        return apply(_EUCLIDEAN, (x1, x2))
    return apply(_CDIST, (x1, x2), (float(p),))


BLOCK = 1 << 18  # differences that NumPy holds at a time


def _lengths(xp, d, p: float):
    """Norms of the rows of differences; for p = 0, a count, NaN is not counted but passed on."""
    if not d.shape[-1]:
        return xp.zeros(d.shape[:-1], d.dtype)
    made = norm_of(xp, d, p, (d.ndim - 1,), False)
    return made if p else xp.where(xp.isnan(d).any(axis=-1), xp.asarray(math.nan, made.dtype), made)


def _lengths_vjp(xp, g, d, out, p: float):
    """The gradient of differences. In the maximum norm each of the largest has all of it, where vector_norm shares it."""
    if p == math.inf:
        return xp.sign(d) * xp.where(xp.abs(d) == xp.expand_dims(out, -1), xp.expand_dims(g, -1), xp.zeros((), g.dtype))
    return norm_vjp(xp, g, d, out, p, (d.ndim - 1,), False)


def _blocks(xp, a, b) -> list[slice]:
    """Rows of a whose differences from all rows of b NumPy holds at a time; XLA holds none."""
    n = a.shape[-2]
    each = math.prod(broadcast_shapes(a.shape[:-2], b.shape[:-2])) * b.shape[-2] * a.shape[-1]
    step = n if xp is not np else max(1, BLOCK // max(each, 1))
    return [slice(i, min(i + step, n)) for i in range(0, n, max(step, 1))]


def _differences(xp, a, b, rows: slice):
    return xp.expand_dims(a[..., rows, :], -2) - xp.expand_dims(b, -3)


def _cdist(xp, a, b, p):
    made = [_lengths(xp, _differences(xp, a, b, rows), p) for rows in _blocks(xp, a, b)]
    if not made:
        return xp.zeros((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), 0, b.shape[-2]), a.dtype)
    return made[0] if len(made) == 1 else xp.concatenate(made, axis=-2)


def _cdist_vjp(xp, g, a, b, out, p):
    ga, gb = [], xp.zeros(b.shape, b.dtype)
    for rows in _blocks(xp, a, b):
        w = _lengths_vjp(xp, g[..., rows, :], _differences(xp, a, b, rows), out[..., rows, :], p)
        ga.append(w.sum(axis=-2))
        gb = gb - sum_to(xp, w.sum(axis=-3), b.shape)
    return (sum_to(xp, xp.concatenate(ga, axis=-2), a.shape) if ga else xp.zeros(a.shape, a.dtype)), gb


_CDIST = Op("cdist", _cdist, vjp=_cdist_vjp, torch_name="CdistBackward0",
            shape=lambda a, b, p: ((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-2]), a.dtype))


def _pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(n, 1)


def _pdist(xp, x, p):
    if xp is not np:
        first, second = _pairs(x.shape[0])
        return _lengths(xp, x[first] - x[second], p)
    return np.concatenate([_lengths(np, x[i] - x[i + 1:], p) for i in range(len(x))] or [np.zeros(0, x.dtype)])


def _pdist_vjp(xp, g, x, out, p):
    if xp is not np:
        first, second = _pairs(x.shape[0])
        w = _lengths_vjp(xp, g, x[first] - x[second], out, p)
        return xp.zeros_like(x).at[first].add(w).at[second].add(-w)
    made, at = np.zeros_like(x), 0
    for i in range(len(x)):
        pairs = slice(at, at := at + len(x) - i - 1)
        w = _lengths_vjp(np, g[pairs], x[i] - x[i + 1:], out[pairs], p)
        made[i] += w.sum(axis=0)
        made[i + 1:] -= w
    return made


_PDIST = Op("pdist", _pdist, vjp=_pdist_vjp, shape=lambda a, p: ((a.shape[0] * (a.shape[0] - 1) // 2,), a.dtype))


@public(method=False)
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """p-norm distances of all pairs of rows of (N, M): N (N - 1) / 2 numbers, the upper triangle of cdist."""
    if need(input, "pdist").ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if input.dtype.category != dt.FLOAT:
        raise RuntimeError("pdist only supports floating-point dtypes")
    p = real(p, "pdist", "p", 2)
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return apply(_PDIST, (input,), (float(p),))


@public(method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias=None) -> Tensor:
    """x1^T W_o x2 + b_o: (*, I), (*, J) and (O, I, J) to (*, O)."""
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for i, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1])):
        if a != b:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {a} and {b}")
    given = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
    if any(t.dtype is not input1.dtype for t in given.values()):
        raise RuntimeError("All tensors must have the same dtype, got " + ", ".join(f"{name}: {t.dtype.c_name}" for name, t in given.items()))
    if weight.ndim < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-weight.ndim}, {weight.ndim - 1}], but got {weight.ndim})")
    for t, k in ((input1, 1), (input2, 2)):
        if t.shape[-1] != weight.shape[k]:
            raise RuntimeError(f"bilinear(): input{k} size does not match weight size: got {t.shape[-1]} but expected {weight.shape[k]}")
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}")
    out = named(einsum("...i,oij,...j->...o", input1, weight, input2), "ViewBackward0")
    return out if bias is None else out + bias
