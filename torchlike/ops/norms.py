"""Vector norms: linalg.vector_norm, dist."""
from __future__ import annotations

import math
from numbers import Number

import numpy as np

from .._arguments import as_dims, flag, real
from .._core import dtype as dt
from .._core.registry import Op
from .._public import named, public
from .._tensor import Tensor, apply
from .pointwise import operands, sub
from .reductions import accumulator, reduced, restore
from .totals import total


def norm_of(xp, x, p, dims, keepdim):
    wide = x.astype(accumulator(x.dtype)) if xp is not np else x.astype(accumulator(x.dtype), copy=False)
    a = wide if p == 2 and wide.dtype.kind == "f" else xp.abs(wide)
    if p and math.prod(x.shape[d] for d in dims) == 1:  # of one element each: nothing overflows, nothing is lost
        r = xp.abs(wide)
        r = r if keepdim else xp.squeeze(r, dims)
    elif p == 2:
        r = xp.sqrt(total(a * a, dims, keepdim) if xp is np else xp.sum(a * a, axis=dims, keepdims=keepdim))
    elif p == 1:
        r = total(a, dims, keepdim) if xp is np else xp.sum(a, axis=dims, keepdims=keepdim)
    elif p == math.inf:
        r = xp.max(a, axis=dims, keepdims=keepdim)
    elif p == -math.inf:
        r = xp.min(a, axis=dims, keepdims=keepdim)
    elif p == 0:
        r = xp.sum((a != 0).astype(a.dtype), axis=dims, keepdims=keepdim)
    else:
        power = np.asarray(p, a.dtype)
        r = xp.power(xp.sum(xp.power(a, power), axis=dims, keepdims=keepdim), 1 / power)
    return r.astype(_real(x.dtype))


def _real(np_dtype):
    return np.empty(0, np_dtype).real.dtype if np_dtype.kind == "c" else np_dtype


def _unit(xp, x):
    """x / |x|, 0 at 0."""
    if x.dtype.kind != "c":
        return xp.sign(x)
    size = xp.abs(x)
    return xp.where(size == 0, xp.zeros((), x.dtype), x / xp.where(size == 0, xp.ones((), size.dtype), size))


def norm_vjp(xp, g, x, out, p, dims, keepdim):
    g, x, out = (z.astype(accumulator(z.dtype), copy=False) for z in (g, x, out))
    g, out = restore(xp, g, x.shape, dims, keepdim), restore(xp, out, x.shape, dims, keepdim)
    zero = xp.zeros((), out.dtype)
    if p == 2:  # not made safe for differentiation: the second derivative at the origin is NaN, as in torch
        if xp is np and x.ndim and out.all():  # in few passes over what may be a large weight (weight_norm)
            unit = x / out
            unit *= g
            return unit
        return g * xp.where(out == 0, xp.zeros((), x.dtype), x / out)
    safe = xp.where(out == 0, xp.ones((), out.dtype), out)
    if p == 1:
        return g * _unit(xp, x)
    if p == 0:
        return xp.zeros_like(x)
    a = xp.abs(x)
    if abs(p) == math.inf:
        hit = (a == out).astype(out.dtype)
        return _unit(xp, x) * (g * hit / xp.sum(hit, axis=dims, keepdims=True))
    power = np.asarray(p - 1, a.dtype)
    scale = xp.where((a == 0) | (out == 0), zero, xp.power(xp.where(a == 0, xp.ones((), a.dtype), a) / safe, power))
    return _unit(xp, x) * g * scale


NORM = Op("linalg_vector_norm", norm_of, vjp=norm_vjp, shape=lambda a, p, dims, keepdim: (reduced(a.shape, dims, keepdim), a.dtype.to_real()))


def _refuse_norm(have: dt.dtype, dtype: dt.dtype) -> None:
    """torch's errors for the dtype in which a norm is asked for."""
    name = "linalg.vector_norm"
    if dtype.category < dt.FLOAT:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype.short}")
    if have.is_complex != dtype.is_complex:
        kind = "complex" if have.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {dtype.short}")
    if dt.promote_types(have, dtype) is not dtype:
        raise RuntimeError(f"{name}: the dtype of the input ({have.short}) should be convertible without narrowing to the specified dtype "
                           f"({dtype.short})")


def vector_norm(input: Tensor, ord: Number = 2, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """(sum |x|^ord)^(1/ord) over dim, all elements by default."""
    if input.dtype.category < dt.FLOAT:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {input.dtype.short}")
    if dtype is not None:
        _refuse_norm(input.dtype, dtype)
        input = input.to(dtype)
    dims = as_dims(dim, input.ndim)
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    ord = real(ord, "linalg_vector_norm", "ord", kind="Number")
    if ord < 0 or ord == math.inf:
        for d in dims:
            if not input.shape[d]:
                where = "an empty tensor because" if dim in (None, ()) else f"the dimension {d}because this dimension is empty and"  # torch's words
                raise RuntimeError(f"linalg.vector_norm cannot compute the {ord:g} norm on {where} the operation does not have an identity")
    out = apply(NORM, (input,), (ord, dims, keepdim if keepdim.__class__ is bool else flag(keepdim)))
    if ord == 0 and out._edge is not None:
        out._edge.edges = [None]  # a count has no gradient: torch gives none, rather than zeros
    return out


@public()
def dist(input, other: Tensor, p: float = 2) -> Tensor:
    """norm(input - other)."""
    p = real(p, "dist", "p", 3, "Number")
    difference = sub(*operands("dist", input, other, ()))
    if difference.dtype.category < dt.FLOAT:
        raise RuntimeError(f"norm(): input dtype should be either floating point or complex. Got {difference.dtype.short} instead.")
    return named(vector_norm(difference, p), "DistBackward0", input, other)
