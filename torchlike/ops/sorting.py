"""Sorting and selection by rank: sort, topk, kthvalue, median, mode, quantile.

Order is torch's: NaN after every number, ties in their original order. XLA's CPU sort of (key, index) pairs is slow;
keys of 32 bits packed with the index into one int64 sort 6 times quicker, and 64-bit keys are two such passes.
"""

from __future__ import annotations

from typing import overload

import numpy as np
from jax import lax
from jax import numpy as jnp

from .._arguments import as_dim, as_int, flag
from .._core import dtype as dt
from .._core.errors import not_implemented
from .._core.registry import Op
from .._core.value import is_tracer
from .._public import EVERY_DIM, named, public
from .._tensor import Tensor, apply
from .extreme_places import place_of
from .gathering import add_along, along, gather
from .positions import elements
from .reductions import reduced, result_type, shared_gradient
from .scans import running
from .scattering import changed_at

FEW = 1 << 11  # elements from which on NumPy sorts packed keys
BLOCK = 1 << 15  # elements whose keys are made at once
SHORT = 48  # elements up to which XLA sorts to find one by its rank


def _ordered_bits(x):
    """Signed integers in the order of x (NaN last), of 32 or 64 bits."""
    kind, size = x.dtype.kind, x.dtype.itemsize
    if kind in "fV":
        if size < 4:
            x, size = x.astype(np.float32), 4
        narrow = size == 4
        to, top = (np.int32, np.int32(0x7FFFFFFF)) if narrow else (np.int64, np.int64(0x7FFFFFFFFFFFFFFF))
        bits = lax.bitcast_convert_type(jnp.where(x == 0, jnp.zeros((), x.dtype), x), to)
        return jnp.where(x != x, top, bits ^ ((bits >> (31 if narrow else 63)) & top))
    if kind == "u" and size >= 4:
        to, low = (np.int32, np.int32(-0x80000000)) if size == 4 else (np.int64, np.int64(-0x8000000000000000))
        return lax.bitcast_convert_type(x, to) ^ low
    return x if size == 8 else x.astype(np.int32)


def _pass(key, index, dim):
    """Indices into `index`'s order sorted by a key of 32 bits, stable."""
    packed = (key.astype(np.int64) << 32) | index
    return lax.sort(packed, dimension=dim, is_stable=False) & 0xFFFFFFFF


def _argsort_packed(x, dim, descending):
    bits = _ordered_bits(x)
    bits = ~bits if descending else bits
    position = lax.broadcasted_iota(np.int64, x.shape, dim)
    if bits.dtype == np.int32:
        return _pass(bits, position, dim)
    low = _pass((bits & 0xFFFFFFFF) - 0x80000000, position, dim)
    high = jnp.take_along_axis((bits >> 32).astype(np.int32), low, dim)
    return jnp.take_along_axis(low, _pass(high, position, dim), dim)


def _argsort_pairs(x, dim, descending):
    bits = _ordered_bits(x)
    position = lax.broadcasted_iota(np.int64, x.shape, dim)
    return lax.sort((~bits if descending else bits, position), dimension=dim, is_stable=True, num_keys=1)[1]


def _least_with(keys, rank, dim, bits: int):
    """The least number below which there are more than `rank` keys (less one) along dim, found bit by bit: counting is a pass of vector
    instructions over memory, and all bits together take a quarter of the time of sorting."""
    count = np.float32 if keys.shape[dim] < 1 << 24 else np.int32
    start = jnp.full((*keys.shape[:dim], 1, *keys.shape[dim + 1:]), 0 if bits < 8 * keys.dtype.itemsize else np.iinfo(keys.dtype).min, keys.dtype)

    def step(k, found):
        more = found + (jnp.ones((), keys.dtype) << (bits - 1 - k).astype(keys.dtype))
        return jnp.where(_below(keys, more, dim, count) <= rank, more, found)
    return lax.fori_loop(0, bits, step, start)


def _below(keys, bound, dim, count):
    return jnp.sum(jnp.where(keys < bound, count(1), count(0)), axis=dim, keepdims=True)


def _rank_index(x, rank, dim):
    """Where the element of a rank stands along dim; of equal ones the one that a stable sort has there."""
    keys = _ordered_bits(x)
    value = _least_with(keys, rank, dim, 8 * keys.dtype.itemsize)
    among = rank - _below(keys, value, dim, np.int32)
    places = jnp.where(keys == value, lax.broadcasted_iota(np.int32, x.shape, dim), np.int32(2 ** 31 - 1))
    return _least_with(places, among, dim, (x.shape[dim] - 1).bit_length()).astype(np.int64)


def packed(x, descending):
    """NumPy int64s whose order is that of x along its last axis (NaN last, ties by position), positions in their low bits; and
    how many bits those are. None where keys of 32 bits do not tell x's elements apart: NumPy sorts whole numbers with vector
    instructions, three times quicker than it sorts indices."""
    n = x.shape[-1]
    kind, width = x.dtype.kind, (n - 1).bit_length()
    if kind in "fV" and x.dtype.itemsize <= 4:
        bits = np.add(x, np.float32(0), dtype=np.float32, casting="unsafe").view(np.int32)  # -0.0 is 0.0
        keys = bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))
        if (nan := np.isnan(x)).any():
            keys[nan] = 0x7FFFFFFF
    elif kind in "iub":
        keys = x.astype(np.int64) if x.dtype != np.uint64 else None
        if keys is None or (x.dtype.itemsize == 8 and max(-int(keys.min()), int(keys.max()) + 1).bit_length() + width > 63):
            return None
    else:
        return None
    keys = (~keys if descending else keys).astype(np.int64)
    keys <<= width
    keys |= np.arange(n)
    return keys, width


def _by_keys(x, dim, descending, pick):
    """The positions along dim of what `pick` takes of packed keys, some rows at a time; None where there are none, or few."""
    if x.size < FEW or not x.size:
        return None
    lines = np.moveaxis(x, dim, -1)
    n = lines.shape[-1]
    rows, step, parts = lines.reshape(-1, n), max(1, BLOCK // n), []
    for i in range(0, len(rows), step):
        found = packed(rows[i:i + step], descending)
        if found is None:
            return None
        keys, width = found
        parts.append(pick(keys) & ((1 << width) - 1))
    index = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.ascontiguousarray(np.moveaxis(index.reshape(*lines.shape[:-1], -1), -1, dim))


def _in_order(keys):
    keys.sort(axis=-1)
    return keys


def _first(k):
    def pick(keys):
        if 4 * k < keys.shape[-1]:
            keys.partition(max(k - 1, 0), axis=-1)
        return _in_order(keys[:, :k]) if 4 * k < keys.shape[-1] else _in_order(keys)[:, :k]
    return pick


def _at_place(rank):
    def pick(keys):
        keys.partition(rank, axis=-1)
        return keys[:, rank:rank + 1]
    return pick


def argsort_array(xp, x, dim, descending):
    """int64 indices that sort x along dim, stable in both directions."""
    if xp is np:
        index = _by_keys(x, dim, descending, _in_order)
        if index is not None:
            return index
        if x.dtype.kind == "V":
            x = x.astype(np.float32)  # NumPy does not know the other types' NaN
        if not descending:
            return np.argsort(x, axis=dim, kind="stable")
        backwards = (*(slice(None),) * dim, slice(None, None, -1))
        return x.shape[dim] - 1 - np.argsort(x[backwards], axis=dim, kind="stable")[backwards]
    if not x.size:
        return jnp.zeros(x.shape, np.int64)
    return lax.platform_dependent(
        x, cpu=lambda x: _argsort_packed(x, dim, descending), default=lambda x: _argsort_pairs(x, dim, descending)
    )


def _sort(xp, x, dim, descending):
    if x.ndim == 0:
        return [x, xp.zeros((), np.int64)]
    index = argsort_array(xp, x, dim, descending)
    return [_at(xp, x, index, dim), index]


def _at(xp, x, index, dim):
    return elements(x, along(index, dim)) if xp is np else xp.take_along_axis(x, index, dim)


def _permuted_vjp(xp, g0, out1, plan):
    """Gradients go back to where distinct indices came from."""
    a, dim = plan.avals[0], plan.statics[0]
    if not a.shape:
        return g0.reshape(())
    if xp is np:
        out = np.zeros(a.shape, g0.dtype)
        np.put_along_axis(out, out1, g0, dim)
        return out
    return changed_at(jnp.zeros(a.shape, g0.dtype), along(out1, dim), g0, "set", unique_indices=True)


_SORT = Op("sort", _sort, shape=lambda a, dim, descending: [(a.shape, a.dtype), (a.shape, dt.int64)], vjp=_permuted_vjp)
_SORT.pointwise = True  # of strides
_ARGSORT = Op(
    "argsort",
    lambda xp, x, dim, descending: _sort(xp, x, dim, descending)[1],
    shape=lambda a, dim, descending: (a.shape, dt.int64),
    vjp=False,
)
_ARGSORT.pointwise = True
_sorted, _largest, _kth, _medians, _nanmedians, _modes = map(
    result_type, ("sort", "topk", "kthvalue", "median", "nanmedian", "mode")
)


def _has_order(name: str, t: Tensor, form: str = "cpu", least: int = dt.INT) -> None:
    """The error of a kernel that puts elements in order, for those that have none."""
    if not least <= t.dtype.category <= dt.FLOAT:
        raise not_implemented(f"{name}_{form}", t.dtype)


@public(out=True)
def sort(input, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> _sorted:
    """(values, indices) sorted along dim; ties keep their order, stable or not."""
    if input.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if stable is not None:
        flag(stable)
    return _sorted(*apply(_SORT, (input,), (as_dim(dim, input.ndim), flag(descending))))


@public(out=True)
def argsort(input, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices that sort input along dim; ties keep their order."""
    if input.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    flag(stable)
    return apply(_ARGSORT, (input,), (as_dim(dim, input.ndim), flag(descending)))


@public(out=True)
def msort(input) -> Tensor:
    """Sorted along the first dimension."""
    return sort(input, 0)[0]


# -- the k largest -----------------------------------------------------------------------------------------------------


def _topk_lax(x, k, dim, largest):
    """lax.top_k is quick for float32 on every platform; it tells NaN by its sign: +NaN first, -NaN last."""
    y = jnp.moveaxis(x, dim, -1).astype(np.float32)
    nan = np.float32(np.nan) if largest else np.copysign(np.float32(np.nan), np.float32(-1))
    y = jnp.where(y != y, nan, (y if largest else -y) + np.float32(0))
    return jnp.moveaxis(lax.top_k(y, k)[1].astype(np.int64), -1, dim)


def _topk(xp, x, k, dim, largest):
    if x.ndim == 0:
        return [x, xp.zeros((), np.int64)] if k else [xp.zeros((0,), x.dtype), xp.zeros((0,), np.int64)]
    exact = x.dtype.itemsize <= 2 or x.dtype == np.float32  # fits float32
    if xp is not np and exact and 0 < k:
        index = _topk_lax(x, k, dim, largest)
    elif xp is np:
        index = _topk_numpy(x, k, dim, largest)
    else:
        index = argsort_array(xp, x, dim, largest)[(slice(None),) * dim + (slice(0, k),)]
    return [_at(xp, x, index, dim), index]


def _topk_numpy(x, k, dim, largest):
    """The k wanted by partition, then sorted."""
    n = x.shape[dim]
    if k == 1 and (x.dtype.kind in "iu" or (x.dtype.kind == "f" and (largest or not np.isnan(x).any()))):
        return (x.argmax if largest else x.argmin)(axis=dim, keepdims=True)
    index = _by_keys(x, dim, largest, _first(k))
    if index is not None:
        return index
    if k > n // 16 or (x.dtype.kind == "f" and np.isnan(x).any()):
        return argsort_array(np, x, dim, largest)[(slice(None),) * dim + (slice(0, k),)]
    last = n - k if largest else k - 1
    part = np.argpartition(x, last, axis=dim) if k else np.zeros(x.shape, np.int64)
    chosen = part[(slice(None),) * dim + (slice(n - k, n) if largest else slice(0, k),)]
    if k:
        bound = np.take_along_axis(x, part[(slice(None),) * dim + (slice(last, last + 1),)], dim)
        wanted = x >= bound if largest else x <= bound
        if np.count_nonzero(wanted) > chosen.size:  # more equal the last that is chosen than there is room for
            chosen = _lowest(wanted, x == bound, k, dim)
    chosen = np.sort(chosen, axis=dim)  # positions in order first, so that ties are stable among those chosen
    return np.take_along_axis(chosen, argsort_array(np, np.take_along_axis(x, chosen, dim), dim, largest), dim)


def _lowest(wanted, last, k, dim):
    """The positions along dim of the k elements that are wanted: of those in `last`, which would be too many, the first."""
    room = k - np.count_nonzero(wanted & ~last, axis=dim, keepdims=True)
    taken = wanted & (~last | (np.cumsum(last, axis=dim) <= room))
    in_rows = np.moveaxis(taken, dim, -1)
    return np.moveaxis(np.nonzero(in_rows)[-1].reshape(*in_rows.shape[:-1], k), -1, dim)


def _topk_shape(a, k, dim, largest):
    shape = () if not a.shape and k else (k,) if not a.shape else (*a.shape[:dim], k, *a.shape[dim + 1 :])
    return [(shape, a.dtype), (shape, dt.int64)]


def _topk_vjp(xp, g0, out1, plan):
    a, (k, dim, _) = plan.avals[0], plan.statics
    if not a.shape:
        return g0.reshape(()) if k else xp.zeros((), g0.dtype)
    return add_along(xp, a.shape, out1, dim, g0)


_TOPK = Op("topk", _topk, shape=_topk_shape, vjp=_topk_vjp)


@public(out=True)
def topk(input, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> _largest:
    """(values, indices) of the k largest (or smallest) along dim, best first."""
    d = as_dim(dim, input.ndim)
    k = as_int(k, "k", symbolic=True)
    if not 0 <= k <= (input.shape[d] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if input.dtype.is_complex or input.dtype is dt.bool_:
        raise RuntimeError(" topk does not support complex dtypes on CPU" if input.dtype.is_complex else "topk does not support bool dtypes on CPU")
    return _largest(*apply(_TOPK, (input,), (k, d, flag(largest))))


# -- one element by rank -----------------------------------------------------------------------------------------------


def _at_rank(xp, x, rank, dim, keepdim):
    """(value, index) at a rank (an int, or an array of them) along dim."""
    if x.ndim == 0:
        return [x, xp.zeros((), np.int64)]
    index = _by_keys(x, dim, False, _at_place(rank)) if xp is np and isinstance(rank, int) else None
    if index is None:
        where = rank if not isinstance(rank, int) else xp.full((*x.shape[:dim], 1, *x.shape[dim + 1 :]), rank)

        def sorted_index(x, where):
            return xp.take_along_axis(argsort_array(xp, x, dim, False), where, dim)
        if xp is not np and x.shape[dim] >= SHORT:
            index = lax.platform_dependent(x, where, cpu=lambda x, where: _rank_index(x, where, dim), default=sorted_index)
        else:
            index = sorted_index(x, where)
    value = _at(xp, x, index, dim)
    return [value, index] if keepdim else [xp.squeeze(value, dim), xp.squeeze(index, dim)]


def _median(xp, x, dim, keepdim, skip_nan):
    """The lower median; NaN wins unless it is skipped."""
    if x.ndim == 0:
        return [x, xp.zeros((), np.int64)]
    n = x.shape[dim]
    if x.dtype.kind not in "fV":
        return _at_rank(xp, x, (n - 1) // 2, dim, keepdim)
    if xp is np and not np.isnan(x).any():
        return _at_rank(xp, x, (n - 1) // 2, dim, keepdim)
    numbers = n - xp.sum((x != x).astype(np.int64), axis=dim, keepdims=True)
    middle = xp.maximum(numbers - 1, 0) // 2
    # the first NaN comes right after the numbers
    return _at_rank(xp, x, middle if skip_nan else xp.where(numbers < n, numbers, middle), dim, keepdim)


def _pair_shape(a, *statics):
    dim, keepdim = statics[-2:]
    shape = reduced(a.shape, (dim,) if a.shape else (), keepdim)
    return [(shape, a.dtype), (shape, dt.int64)]


def _pair_vjp(xp, g0, out1, plan):
    a, (dim, keepdim) = plan.avals[0], plan.statics[-2:]
    if not a.shape:
        return g0
    if not keepdim:
        g0, out1 = xp.expand_dims(g0, dim), xp.expand_dims(out1, dim)
    positions = np.arange(a.shape[dim]).reshape([-1 if i == dim else 1 for i in range(a.ndim)])
    return xp.where(positions == out1, g0, xp.zeros((), g0.dtype))


_KTHVALUE = Op(
    "kthvalue", lambda xp, x, k, dim, keepdim: _at_rank(xp, x, k - 1, dim, keepdim), shape=_pair_shape, vjp=_pair_vjp
)


@public(out=True)
def kthvalue(input, k: int, dim: int = -1, keepdim: bool = False) -> _kth:
    """(values, indices) of the k-th smallest along dim, counted from 1."""
    d = as_dim(dim, input.ndim)
    if input.ndim and not input.shape[d]:
        raise IndexError(f"kthvalue(): Expected reduction dim {d} to have non-zero size.")
    if not 1 <= k <= (input.shape[d] if input.ndim else 1):
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(d))
    _has_order("kthvalue", input)
    return _kth(*apply(_KTHVALUE, (input,), (as_int(k, "k", symbolic=True), d, keepdim if keepdim.__class__ is bool else flag(keepdim))))


def _median_pair(name, skip_nan, made):
    op = Op(
        f"{name}_dim",
        lambda xp, x, dim, keepdim: _median(xp, x, dim, keepdim, skip_nan),
        shape=_pair_shape,
        vjp=_pair_vjp,
        torch_name=f"{name.capitalize()}Backward1",
    )
    whole = Op(
        name,
        lambda xp, x: _median(xp, x.reshape(-1), 0, False, skip_nan)[0],
        shape=lambda a: ((), a.dtype),
        vjp=shared_gradient,
    )

    @overload
    def f(input: Tensor) -> Tensor: ...
    @overload
    def f(input: Tensor, dim: int, keepdim: bool = False) -> made: ...
    def f(input, dim=EVERY_DIM, keepdim: bool = False):
        if dim is EVERY_DIM:
            _has_order("median", input)
            if not input.numel():
                return _empty_median(input)
            return apply(whole, (input,))
        _has_order("median", input, "out")
        d = as_dim(dim, input.ndim)
        if input.ndim and not input.shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return made(*apply(op, (input,), (d, keepdim if keepdim.__class__ is bool else flag(keepdim))))

    f.__name__ = f.__qualname__ = name
    f.__doc__ = (
        f"The lower median of all elements, or (values, indices) along dim{'; NaN is skipped' if skip_nan else ''}."
    )
    return public(out=True)(f)


def _empty_median(input: Tensor) -> Tensor:
    from .creation import constant

    value = (
        float("nan") if input.dtype.category == dt.FLOAT else 0 if input.dtype is not dt.int64 else -0x8000000000000000
    )
    return constant((), value, input.dtype, input.device)


median = _median_pair("median", False, _medians)
nanmedian = _median_pair("nanmedian", True, _nanmedians)


def _mode(xp, x, dim, keepdim):
    """The smallest of the most frequent values, and where it stands last."""
    if x.ndim == 0:
        return [x, xp.zeros((), np.int64)]
    y = xp.moveaxis(x, dim, -1)
    order = argsort_array(xp, y, y.ndim - 1, False)
    ordered = xp.take_along_axis(y, order, -1)
    position = np.arange(y.shape[-1])
    new = ordered[..., 1:] != ordered[..., :-1]
    starts = xp.concatenate([xp.zeros((*y.shape[:-1], 1), np.int64), xp.where(new, position[1:], 0)], axis=-1)
    starts = running(xp, starts, starts.ndim - 1, "cummax")
    runs = position - starts
    # the longest ends here; ties: the first, the smallest value
    last = runs.argmax(axis=-1, keepdims=True) if xp is np else place_of(runs, -1, True, True).astype(np.int64)
    index = xp.take_along_axis(order, last, -1)
    value = xp.take_along_axis(y, index, -1)
    value, index = xp.moveaxis(value, -1, dim), xp.moveaxis(index, -1, dim)
    return [value, index] if keepdim else [xp.squeeze(value, dim), xp.squeeze(index, dim)]


_MODE = Op("mode", _mode, shape=_pair_shape, vjp=_pair_vjp)


@public(out=True)
def mode(input, dim: int = -1, keepdim: bool = False) -> _modes:
    """(values, indices) of the most frequent value along dim."""
    d = as_dim(dim, input.ndim)
    _has_order("mode", input, least=dt.BOOL)
    if input.ndim and not input.shape[d]:
        raise IndexError(f"mode(): Expected reduction dim {d} to have non-zero size.")
    return _modes(*apply(_MODE, (input,), (d, keepdim if keepdim.__class__ is bool else flag(keepdim))))


# -- quantiles ---------------------------------------------------------------------------------------------------------

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(input, q, dim, keepdim, interpolation, skip_nan, name):
    if input.dtype not in (dt.float32, dt.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not input.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if isinstance(q, Tensor):
        if q.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q.dtype is not input.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        if q.device is not input.device:
            raise RuntimeError(f"{name}() q tensor must be on the same device as the input tensor")
        if q.device.type == "cpu" and not is_tracer(q._current().array) and not bool(((q >= 0) & (q <= 1)).all()):
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    else:
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        q = input.new_tensor(float(q))
    shape = input.shape
    if dim is None:
        flat, d = input.reshape(-1), 0
        ends = (1,) * input.ndim
    else:
        flat, d = input if input.ndim else input.reshape(1), as_dim(dim, input.ndim)
        ends = tuple(1 if k == d else n for k, n in enumerate(shape))
    values = sort(flat.movedim(d, -1), -1)[0]
    n = values.shape[-1]
    if skip_nan:
        ranks = q.reshape(-1) * (n - values.isnan().sum(-1, keepdim=True) - 1).clamp(min=0)
    else:
        ranks = q.reshape(-1) * (n - 1)
        ranks = ranks.masked_fill(values[..., -1:].isnan(), n - 1)  # the last is NaN when any is
    if interpolation in ("lower", "higher", "nearest"):
        ranks = getattr(ranks, {"lower": "floor", "higher": "ceil", "nearest": "round"}[interpolation])()
    below = ranks.floor().long()
    found = gather(values, -1, below.expand(*values.shape[:-1], q.numel()))
    if interpolation in ("linear", "midpoint"):
        above = gather(values, -1, ranks.ceil().long().expand(*values.shape[:-1], q.numel()))
        weight = ranks - below if interpolation == "linear" else 0.5
        found = found.lerp(above, weight.expand_as(found).to(found.dtype) if isinstance(weight, Tensor) else weight)
    if keepdim:
        found = found.movedim(-1, 0).reshape((q.numel(), *ends))
    else:
        found = found.movedim(-1, 0)
    return named(found.reshape(found.shape[1:]) if not q.ndim else found, "SqueezeBackward4")


@public(out=True)
def quantile(input, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The q-th quantiles along dim, or of all elements; a vector q becomes the first dimension."""
    return _quantile(input, q, dim, keepdim, interpolation, False, "quantile")


@public(out=True)
def nanquantile(input, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """quantile of the elements that are not NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, True, "nanquantile")
