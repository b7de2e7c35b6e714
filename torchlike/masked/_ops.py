"""Reductions and normalizations of the elements that a boolean mask keeps: the others count as the operation's identity."""
from __future__ import annotations

import math
from typing import Any

from .. import ops as _ops  # noqa: F401  (publishes FUNCTIONS)
from .._core import dtype as dt
from .._public import FUNCTIONS as F
from .._tensor import Tensor
from ..ops.norms import vector_norm
from ..ops.queries import iinfo


def _whole(input: Tensor, mask: Tensor) -> Tensor:
    """The mask of each element."""
    if len(mask.shape) > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.broadcast_to(input.shape).bool()


def _kept(input: Tensor, mask: Tensor | None, identity) -> Tensor:
    return input if mask is None else F["where"](_whole(input, mask), input, input.new_full((), identity))


def _dims(dim, ndim: int) -> tuple[int, ...]:
    found: list[int] = []
    if dim is None:
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        found.append(d % ndim)
    return tuple(found)


def _dim(dim, ndim: int) -> int:
    """Functions of one dimension take the first."""
    return _dims(dim, ndim)[0] if ndim else 0


def _summed(input: Tensor, dtype):
    """The dtype of sums and products: of integers int64."""
    return dtype if dtype is not None else input.dtype if input.dtype.category >= dt.FLOAT else dt.int64


def _bounded(input: Tensor, mask: Tensor | None, name: str, largest: bool = False) -> Tensor:
    """What the mask keeps; the least number of its dtype, or the largest, elsewhere."""
    if mask is None:
        return input
    if input.dtype.category == dt.FLOAT or (input.is_complex() and name == "logsumexp"):
        return _kept(input, mask, math.inf if largest else -math.inf)
    if input.dtype is dt.bool_:
        raise NotImplementedError(f"identity of {name} on torch.bool input")
    limits = iinfo(input.dtype)
    return _kept(input, mask, limits.max if largest else limits.min)


def sum(input: Tensor, dim=None, *, keepdim: bool | None = False, dtype=None, mask: Tensor | None = None) -> Tensor:  # noqa: A001
    """The sum of what the mask keeps; 0 of nothing."""
    return F["sum"](_kept(input, mask, 0), _dims(dim, input.ndim), bool(keepdim), dtype=_summed(input, dtype))


def prod(input: Tensor, dim=None, *, keepdim: bool | None = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The product of what the mask keeps; 1 of nothing."""
    dtype, out, dims = _summed(input, dtype), _kept(input, mask, 1), _dims(dim, input.ndim)
    if dtype is dt.int32:  # torch multiplies integers as int64
        dtype = dt.int64
    for d in sorted(dims, reverse=True):
        out = out.prod(d, keepdim=bool(keepdim), dtype=dtype)
    return out if dims else out.prod(dtype=dtype) if not input.ndim or dim == () else out.to(dtype)


def amax(input: Tensor, dim=None, *, keepdim: bool | None = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The largest element that the mask keeps; the least number there is of nothing."""
    return F["amax"](_bounded(input, mask, "amax"), _dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def amin(input: Tensor, dim=None, *, keepdim: bool | None = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The least element that the mask keeps; the largest number there is of nothing."""
    return F["amin"](_bounded(input, mask, "amin", largest=True), _dims(dim, input.ndim), bool(keepdim)).to(dtype or input.dtype)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The position of the largest element that the mask keeps, as a number of the input's dtype."""
    return F["argmax"](_bounded(input, mask, "argmax"), dim, bool(keepdim)).to(dtype or input.dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The position of the least element that the mask keeps, as a number of the input's dtype."""
    return F["argmin"](_bounded(input, mask, "argmin", largest=True), dim, bool(keepdim)).to(dtype or input.dtype)


def _count(input: Tensor, dim, keepdim, mask: Tensor | None) -> Tensor:
    ones = F["ones"](input.shape, dtype=dt.int64, device=input.device)
    return sum(ones, dim, keepdim=keepdim, mask=mask)


def mean(input: Tensor, dim=None, *, keepdim: bool | None = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The mean of what the mask keeps; NaN of nothing."""
    for word, kind in (("Optional", dtype), ("Input", input.dtype if dtype is None else None)):
        if kind is not None and kind.category < dt.FLOAT:
            raise ValueError(f"mean(): Could not infer output dtype. {word} dtype must be either a floating point or complex dtype. Got: {kind}")
    if mask is None:
        return F["mean"](input, _dims(dim, input.ndim), bool(keepdim), dtype=dtype or input.dtype)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, dim, keepdim, mask)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The lower median of what the mask keeps; NaN of nothing."""
    d, real = _dim(dim, input.ndim), input.dtype.category >= dt.FLOAT
    x = input if real else input.to(dt.float32)
    out = F["nanmedian"](_kept(x, mask, math.nan), d, keepdim).values if mask is not None else F["median"](x, d, keepdim).values
    if not real and mask is not None and bool(out.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return out if real else out.to(dtype or input.dtype)


def _spread(input: Tensor, dim, unbiased, correction, keepdim, mask: Tensor | None, compute) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    correction = int(unbiased) if unbiased is not None else 1 if correction is None else correction
    count = _count(input, dim, True, mask)
    middle = sum(input, dim, keepdim=True, dtype=compute, mask=mask) / count
    off = input - middle
    total = sum(off * off.conj(), dim, keepdim=keepdim, dtype=compute, mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    count = (count - correction).clamp(min=0)
    return (total.real if total.is_complex() else total) / count


def _computed(input: Tensor, dtype):
    dtype = input.dtype if dtype is None else dtype
    return dtype if dtype.category >= dt.FLOAT else dt.float32


def var(input: Tensor, dim=None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool | None = False, dtype=None,
        mask: Tensor | None = None) -> Tensor:
    """The variance of what the mask keeps."""
    compute = _computed(input, dtype)
    return _spread(input, dim, unbiased, correction, keepdim, mask, compute).to(compute if dtype is None else dtype)


def std(input: Tensor, dim=None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool | None = False, dtype=None,
        mask: Tensor | None = None) -> Tensor:
    """The standard deviation of what the mask keeps."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def norm(input: Tensor, ord: float | None = 2.0, dim=None, *, keepdim: bool | None = False, dtype=None, mask: Tensor | None = None) -> Tensor:  # noqa: A002
    """The vector norm of what the mask keeps: what it does not counts as 0, or, in the norm of the least element, as infinite."""
    if mask is not None and ord == -math.inf and input.dtype.category != dt.FLOAT:
        raise AssertionError(f"input must be floating point, got {input.dtype}")
    x = _kept(input, mask, math.inf if ord == -math.inf else 0)
    return vector_norm(x, ord, _dims(dim, input.ndim), bool(keepdim), dtype=dtype)


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype=None, mask: Tensor | None = None) -> Tensor:  # noqa: A002
    """What the mask keeps over its norm along dim, or over eps where that is larger."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _kept(input, mask, 0) / size.maximum(size.new_full((), eps))


def cumsum(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Running sums of what the mask keeps."""
    return F["cumsum"](_kept(input, mask, 0), _dim(dim, input.ndim), dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Running products of what the mask keeps."""
    return F["cumprod"](_kept(input, mask, 1), _dim(dim, input.ndim), dtype=dtype or input.dtype)


def softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Softmax of what the mask keeps; 0 elsewhere."""
    return F["softmax"](_bounded(input, mask, "amax"), _dim(dim, input.ndim), dtype=dtype or input.dtype)


def log_softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of softmax of what the mask keeps; -inf elsewhere."""
    return F["log_softmax"](_bounded(input, mask, "amax"), _dim(dim, input.ndim), dtype=dtype or input.dtype)


def softmin(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negative."""
    return F["softmax"](-_bounded(input, mask, "amin", largest=True), _dim(dim, input.ndim), dtype=dtype or input.dtype)


def logsumexp(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """log(sum(exp(x))) of what the mask keeps."""
    dims = _dims(dim, input.ndim) or tuple(range(input.ndim)) or 0
    return F["logsumexp"](_bounded(input, mask, "logsumexp"), dims, bool(keepdim)).to(dtype or input.dtype)


def logaddexp(input: Tensor, other: Tensor, *, dtype=None, input_mask: Tensor | None = None, other_mask: Tensor | None = None) -> Tensor:
    """log(exp(x) + exp(y)) of what the masks keep of each."""
    kept: Any = [_bounded(x, mask, "logaddexp") for x, mask in ((input, input_mask), (other, other_mask))]
    return F["logaddexp"](*kept).to(dtype or input.dtype)
