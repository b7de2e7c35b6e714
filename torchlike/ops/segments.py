"""segment_reduce: reductions over consecutive pieces of one dimension."""
from __future__ import annotations

import math

import numpy as np

from .._arguments import as_dim
from .._core import dtype as dt
from .._core.arrays import cast
from .._core.errors import not_implemented
from .._core.registry import Op
from .._public import FUNCTIONS, public
from .._tensor import Tensor, apply, as_tensor_value
from .choosing import choose
from .reductions import accumulator

_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_NAMES = {"amax": "max", "amin": "min"}


def _lengths(data: Tensor, lengths, offsets, axis: int, unsafe: bool) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of the pieces."""
    given, word = (lengths, "lengths") if lengths is not None else (offsets, "offsets")
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if given.dtype not in (dt.int32, dt.int64):
        raise not_implemented(f"_segment_reduce_{word}_cpu_kernel1", given.dtype)
    if axis != given.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {word} but got {axis}.")
    host = given._host_array()
    if lengths is None:
        return host[..., :-1], np.diff(host, axis=-1)
    if (host < 0).any():
        raise RuntimeError("lengths contains negative value!")
    if not unsafe and (host.sum(-1) != data.shape[axis]).any():
        raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.")
    return np.cumsum(host, -1) - host, host


def _wide(xp, x):
    return cast(xp, x, np.dtype(accumulator(x.dtype)))


def _count(xp, inside, axis):
    return xp.maximum(inside.sum(axis=axis, keepdims=True), 1)


def _reduce(xp, parts, inside, start, name, axis, alone):
    """Pieces padded to one length along `axis`, where only what is `inside` counts. `alone`: no initial value, so an empty piece has no mean."""
    x = choose(xp, inside, _wide(xp, parts), xp.asarray(_NEUTRAL[name], accumulator(parts.dtype)))
    start = xp.asarray(start).astype(x.dtype)
    if name in ("sum", "mean"):
        out = x.sum(axis=axis) + start
    elif name == "prod":
        out = x.prod(axis=axis) * start
    else:
        out = (xp.maximum if name == "max" else xp.minimum)((x.max if name == "max" else x.min)(axis=axis), start)
    if name == "mean":
        out = out / _count(xp, inside, axis).squeeze(axis).astype(out.dtype)
        if alone:
            out = choose(xp, inside.any(axis=axis), out, xp.asarray(math.nan, out.dtype))
    return cast(xp, out, parts.dtype)


def _others(xp, x, axis):
    """The product of all other elements along axis."""
    def before(y):
        y = xp.cumprod(y, axis=axis)
        return xp.concatenate([xp.ones_like(xp.take(y, xp.arange(1), axis=axis)), xp.take(y, xp.arange(y.shape[axis] - 1), axis=axis)], axis=axis)
    return before(x) * xp.flip(before(xp.flip(x, axis)), axis)


def _reduce_vjp(xp, g, parts, inside, start, out, name, axis):
    """An extreme's gradient is shared among the elements that equal it, also where the initial value does; NaN equal each other."""
    g, x = _wide(xp, xp.expand_dims(g, axis)), _wide(xp, parts)
    if name == "prod":
        made = g * _others(xp, choose(xp, inside, x, xp.ones((), x.dtype)), axis) * xp.asarray(start).astype(x.dtype)
    elif name == "mean":
        made = g / _count(xp, inside, axis).astype(g.dtype)
    elif name == "sum":
        made = xp.broadcast_to(g, parts.shape)
    else:
        most = xp.expand_dims(out, axis)
        inside = inside & ((parts == most) | ((parts != parts) & (most != most)))
        made = g / _count(xp, inside, axis).astype(g.dtype)
    return choose(xp, inside, made, xp.zeros((), made.dtype)), None, None


_REDUCE = Op("segment_reduce", _reduce, vjp=_reduce_vjp, shape=lambda a, inside, start, name, axis, alone: ((*a.shape[:axis], *a.shape[axis + 1:]), a.dtype))


@public(method=False)
def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None,
                   axis: int = 0, unsafe: bool = False, initial=None) -> Tensor:
    """sum, mean, prod, max or min of each piece of `axis`, given by lengths or by offsets; `initial` takes part in every piece."""
    name = _NAMES.get(reduce, reduce)
    if name not in _NEUTRAL:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    axis = as_dim(axis, data.ndim)
    starts, counts = _lengths(data, lengths, offsets, axis, unsafe)
    if data.dtype.category != dt.FLOAT:
        raise not_implemented("_segment_reduce_cpu", data.dtype)
    batch, rest = data.shape[:axis], data.shape[axis + 1:]
    pieces = starts.shape[-1]
    longest = np.arange(max(int(counts.max(initial=0)), 1))
    inside = longest < counts[..., None]
    at = np.where(inside, starts[..., None] + longest, 0).reshape(-1, pieces, len(longest))
    rows = np.arange(at.shape[0])[:, None, None]
    flat = data.reshape(math.prod(batch), data.shape[axis], *rest)
    parts = flat[as_tensor_value(np.broadcast_to(rows, at.shape), data.device), as_tensor_value(at, data.device)] if flat.numel() else flat.new_zeros(*at.shape, *rest) + flat.sum()
    start = float(_NEUTRAL[name] if initial is None else initial)
    shape = (*batch, pieces, len(longest))
    return apply(_REDUCE, (parts.reshape(*shape, *rest), as_tensor_value(inside.reshape(*shape, *(1,) * len(rest)), data.device), start), (name, axis + 1, initial is None))


FUNCTIONS["_segment_reduce"] = segment_reduce  # the name by which graph libraries call it
