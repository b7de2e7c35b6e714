"""Counting: bincount, histograms, nonzero counts; sums and means without NaN; both extremes at once."""

from __future__ import annotations

import math

import numpy as np

from .._arguments import as_dim, as_dims, as_int, flag, real
from .._core import dtype as dt
from .._core import program
from .._core.errors import not_implemented
from .._core.registry import Op
from .._core.rng_dtypes import cpp_type
from .._kinds import combination
from .._public import named, public
from .._tensor import Tensor, apply
from ..autograd.grad_mode import no_grad
from .blocks import in_blocks
from .choosing import choose
from .gathering import write_at
from .joining import stack
from .masks import _on
from .named_results import named_result
from .pointwise import _plain_number, number
from .ranges import linspace
from .reductions import _sum, _sum_dtype, amax, amin, reduced, restore, sum
from .sets import searchsorted
from .underivable import underived

_histogram, _histogramdd = (
    named_result("histogram", "hist", "bin_edges"),
    named_result("histogramdd", "hist", "bin_edges", out=False),
)
_aminmax = named_result("aminmax", "min", "max")


@public()
def bincount(input, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each nonnegative integer occurs in a vector, or the sum of its weights."""
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.dtype.category != dt.INT:
        raise not_implemented("bincount_cpu", input.dtype)
    array = input._host_array()
    if array.ndim != 1 or (array.size and array.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None or not array.size:
        return _on(np.bincount(array.astype(np.int64), minlength=minlength).astype(np.int64), input.device)
    if weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    found = np.bincount(array.astype(np.int64), weights._host_array().astype(np.float64), minlength)
    made = _on(found.astype(np.float32 if weights.dtype is dt.float32 else np.float64), input.device)
    return underived("bincount", made, weights)


# -- histograms --------------------------------------------------------------------------------------------------------


def _histc(xp, x, low, high, bins):
    x = x.reshape(-1)
    low, high = xp.asarray(low).astype(x.dtype), xp.asarray(high).astype(x.dtype)
    inside = (x >= low) & (x <= high)
    place = xp.where(inside, (x - low) / (high - low) * np.asarray(bins, x.dtype), xp.zeros((), x.dtype)).astype(
        np.int64
    )
    return write_at(xp, xp.zeros(bins, x.dtype), (xp.minimum(place, bins - 1),), inside.astype(x.dtype), "add")


_HISTC = Op("histc", _histc, shape=lambda a, low, high, bins: ((bins,), a.dtype), vjp=False)


def _checked_range(name: str, low, high, dim: int | None = None) -> tuple[float, float]:
    low, high = _plain_number(number(low)), _plain_number(number(high))
    if not (math.isfinite(low) and math.isfinite(high)):
        raise _endless(name, low, high, dim)
    if low > high:
        raise RuntimeError(f"{name}: " + ("max must be larger than min" if dim is None else f"min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}"))
    return float(low), float(high)


def _endless(name: str, low, high, dim: int | None) -> RuntimeError:
    return RuntimeError(f"{name}: " + (f"range of [{low:g}, {high:g}]" if dim is None else f"dimension {dim}'s range [{low:g}, {high:g}]") + " is not finite")


def _known(x: Tensor) -> np.ndarray | None:
    array = x._known()
    return array if isinstance(array, np.ndarray) else None


def _data_range(name: str, x: Tensor, known: np.ndarray | None, apart: float, dim: int | None = None) -> tuple:
    """The smallest and the largest element, moved `apart` where they are equal. `known`: x's elements, where the error can come on the user's line."""
    a, b = amin(x.detach()), amax(x.detach())
    if known is not None:
        ends = float(known.min()), float(known.max())
        if not np.isfinite(ends).all():
            raise _endless(name, *ends, dim)
    else:
        program.check((a.isfinite() & b.isfinite())._value, lambda ends: _endless(name, *map(float, ends), dim), found=stack((a, b))._value)
    widen = (a == b).to(x.dtype) * apart
    return a - widen, b + widen


@public(out=True)
def histc(input, bins: int = 100, min=0, max=0) -> Tensor:
    """Counts in equal bins between min and max (the data's where both are equal), without NaN and outliers."""
    bins = as_int(bins, "bins", "histc(): ", " (position 2)")
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = _checked_range("torch.histc", real(min, "histc", "min", 3, "Number"), real(max, "histc", "max", 4, "Number"))
    if not input.dtype.is_floating_point:
        raise not_implemented("histogram_cpu", input.dtype)
    if low == high:
        low, high = _data_range("torch.histc", input, _known(input), 1.0) if input.numel() else (low - 1, high + 1)
    return apply(_HISTC, (input, low, high), (as_int(bins, "bins"),))


def _edges(name: str, x: Tensor, known: np.ndarray | None, bins, given, dim: int = 0) -> Tensor:
    """Bin edges along one dimension: as given, or equally spaced over a range."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1:
            raise RuntimeError(f"torch.histogramdd: bins tensor should have one dimension, but got {bins.ndim} dimensions in the bins tensor for "
                               f"dimension {dim}")
        if not bins.numel():
            raise RuntimeError("torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
                               f"dimension {dim}")
        bins, edges = bins.numel() - 1, bins
    else:
        edges = None
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")
    if edges is not None:
        return edges
    if given is not None:
        low, high = _checked_range(name, *given, dim)
        low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
    else:
        low, high = _data_range(name, x, known, 0.5, dim) if x.numel() else (0.0, 1.0)
    return linspace(low, high, bins + 1, dtype=x.dtype, device=x.device)


def _bin(x: Tensor, edges: Tensor):
    """(bin of each element, whether it lies in any); the last bin includes its upper edge."""
    n = edges.shape[0] - 1
    where = searchsorted(edges.contiguous(), x.contiguous(), right=True) - 1
    return where.clamp(0, n - 1), (x >= edges[0]) & (x <= edges[-1])


def _count(name: str, points: Tensor, edges: list, weight, density: bool) -> Tensor:
    """Weights of the rows of points summed by the cell they fall in."""
    if weight is None:
        weight = points.new_ones(points.shape[0])
    elif weight.shape != points.shape[:1]:
        raise RuntimeError(f"{name}: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost dimension, but got "
                           f"input with shape {list(points.shape)} and weight with shape {list(weight.shape)}")
    elif weight.dtype is not points.dtype:
        raise RuntimeError(
            f"{name}: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input "
            f"{points.dtype.short}, and weight {weight.dtype.short}"
        )
    shape = [e.shape[0] - 1 for e in edges]
    cell, inside = 0, True
    for i, e in enumerate(edges):
        where, ok = _bin(points[:, i], e)
        cell, inside = cell * shape[i] + where, ok & inside
    hist = points.new_zeros(math.prod(shape))
    if edges:  # torch counts nothing in a space without dimensions
        hist = hist.index_add(0, cell, weight.reshape(-1) * inside.to(weight.dtype))
    hist = hist.reshape(shape)
    if density:
        hist = hist / hist.sum()
        for i, e in enumerate(edges):
            hist = hist / e.diff().reshape([-1 if k == i else 1 for k in range(len(shape))])
    return hist


def _need_float(input: Tensor) -> None:
    if input.dtype not in (dt.float32, dt.float64):
        raise not_implemented("histogramdd", input.dtype)


def _same_dtype(input: Tensor, bins: list) -> None:
    for i, edges in enumerate(bins):
        if isinstance(edges, Tensor) and edges.dtype is not input.dtype:
            raise RuntimeError("torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                               f"{cpp_type(input.dtype.np)} and bins for dimension {i} with dtype {cpp_type(edges.dtype.np)}")


@public(out=True)
def histogram(input, bins=100, *, range=None, weight: Tensor | None = None, density: bool = False) -> _histogram:
    """(hist, bin_edges) of all elements; bins: their number, or a vector of edges."""
    _need_float(input)
    if not isinstance(bins, Tensor) or range is not None:  # edges leave no choice of a range
        if not hasattr(bins, "__index__") or (isinstance(bins, Tensor) and (bins.ndim or bins.dtype.category >= dt.FLOAT)):
            raise combination("histogram", (input, bins), {} if range is None else {"range": range})
        bins = bins.__index__()
    with no_grad():
        flat = input.reshape(-1)
        _same_dtype(input, [bins])
        edges = _edges("torch.histogramdd", flat, _known(input), bins, range)
        hist = _count("torch.histogramdd", flat.unsqueeze(1), [edges], None if weight is None else weight.reshape(-1), density)
    return _histogram(*[underived("histogram", x, input, bins, weight) for x in (hist, edges)])


@public(method=False)
def histogramdd(input, bins, *, range=None, weight=None, density: bool = False) -> tuple[Tensor, tuple[Tensor, ...]]:
    """(hist, bin_edges) of points in the last dimension; bins: a number, one a dimension, or edges."""
    _need_float(input)
    name = "torch.histogramdd"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input tensor should have at least 2 dimensions")
    d = input.shape[-1]
    bins = [bins] * d if isinstance(bins, int) else list(bins)
    if len(bins) != d:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * d:
        raise RuntimeError(
            f"{name}: for a {d}-dimensional histogram range should have {2 * d} elements, but got {len(range)}"
        )
    with no_grad():
        points, known = input.reshape(math.prod(input.shape[:-1]), d), _known(input)
        given = [None if range is None else range[2 * i : 2 * i + 2] for i in _range(d)]
        _same_dtype(input, bins)
        edges = [_edges(name, points[:, i], None if known is None else known[..., i], b, r, i) for i, (b, r) in enumerate(zip(bins, given))]
        hist = _count(name, points, edges, None if weight is None else weight.reshape(-1), density)
    by_edges = bool(bins) and isinstance(bins[0], Tensor)
    hist = underived(f"_histogramdd_from_bin_{'tensors' if by_edges else 'cts'}", hist, input, weight, *bins)
    return _histogramdd(hist, tuple(edges if by_edges else [underived("_histogramdd_bin_edges", e, input, weight) for e in edges]))


_range = range

# -- reductions --------------------------------------------------------------------------------------------------------


@public()
def count_nonzero(input, dim=None) -> Tensor:
    """The number of elements that are not zero, along dim or in all."""
    return sum(input != 0, dim)


@public(out=True)
def aminmax(input, *, dim: int | None = None, keepdim: bool = False) -> _aminmax:
    """(min, max) along dim, or of all elements."""
    if input.dtype.is_complex:
        raise not_implemented("aminmax_cpu", input.dtype)
    if dim is None:
        if not input.numel():
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        made = _aminmax(amin(input), amax(input))
        if keepdim:
            made = _aminmax(*(t.reshape((1,) * input.ndim) for t in made))
    else:
        d = as_dim(dim, input.ndim)
        if input.ndim and not input.shape[d]:
            raise IndexError(f"aminmax: Expected reduction dim {d} to have non-zero size.")
        made = _aminmax(amin(input, d, keepdim), amax(input, d, keepdim))
    for t in made:
        named(t, "AminmaxBackward0")
    return made


@in_blocks
def _without_nan(xp, x):
    return choose(xp, x == x, x, xp.zeros((), x.dtype))


def _nansum(xp, x, dims, keepdim, dtype):
    if xp is np and x.dtype.kind in "fV" and dtype.np.kind in "fV":
        made = _sum(xp, x, dims, keepdim, dtype)
        if not np.isnan(made).any():  # then no element is
            return made
    return _sum(xp, _without_nan(xp, x) if x.dtype.kind in "fV" else x, dims, keepdim, dtype)


def _nansum_vjp(xp, g, x, plan):
    dims, keepdim, _ = plan.statics
    g = xp.broadcast_to(restore(xp, g, x.shape, dims, keepdim), x.shape)
    return choose(xp, x == x, g, xp.zeros((), g.dtype))


_NANSUM = Op(
    "nansum", _nansum, shape=lambda a, dims, keepdim, dtype: (reduced(a.shape, dims, keepdim), dtype), vjp=_nansum_vjp
)


@public(out=True)
def nansum(input, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """The sum of the elements that are not NaN."""
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    return apply(_NANSUM, (input,), (as_dims(dim, input.ndim), keepdim if keepdim.__class__ is bool else flag(keepdim), _sum_dtype(input, dtype)))


@public(out=True)
def nanmean(input, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """The mean of the elements that are not NaN."""
    if input.dtype.category < dt.FLOAT:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.short}"
        )
    if dtype is not None and dtype.category < dt.FLOAT:
        raise RuntimeError("nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: "
                           f"{dtype.short}")
    count = (~input.detach().isnan()).sum(dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / count
