"""segment_reduce: reductions over consecutive pieces of one dimension."""
from __future__ import annotations

import math

import numpy as np

from .._core import dtype as dt
from .._public import FUNCTIONS, public
from .._tensor import Tensor, as_tensor_value
from .basic import where
from .pointwise import maximum, minimum

_NEUTRAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_NAMES = {"amax": "max", "amin": "min"}


def _lengths(data: Tensor, lengths, offsets, axis: int, unsafe: bool) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths of the pieces."""
    given, word = (lengths, "lengths") if lengths is not None else (offsets, "offsets")
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if given.dtype not in (dt.int32, dt.int64):
        raise NotImplementedError(f"\"_segment_reduce_{word}_cpu_kernel1\" not implemented for '{given.dtype.short}'")
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


@public(method=False)
def segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None,
                   axis: int = 0, unsafe: bool = False, initial=None) -> Tensor:
    """sum, mean, prod, max or min of each piece of `axis`, given by lengths or by offsets; `initial` takes part in every piece."""
    name = _NAMES.get(reduce, reduce)
    if name not in _NEUTRAL:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    starts, counts = _lengths(data, lengths, offsets, axis, unsafe)
    if data.dtype.category != dt.FLOAT:
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{data.dtype.short}'")
    batch, rest = data.shape[:axis], data.shape[axis + 1:]
    pieces = starts.shape[-1]
    longest = np.arange(max(int(counts.max(initial=0)), 1))
    inside = longest < counts[..., None]
    at = np.where(inside, starts[..., None] + longest, 0).reshape(-1, pieces, len(longest))
    rows = np.arange(at.shape[0])[:, None, None]
    flat = data.reshape(math.prod(batch), data.shape[axis], *rest)
    parts = flat[as_tensor_value(np.broadcast_to(rows, at.shape), data.device), as_tensor_value(at, data.device)] if flat.numel() else flat.new_zeros(*at.shape, *rest)
    ones = (1,) * len(rest)
    parts = where(as_tensor_value(inside.reshape(*at.shape, *ones), data.device), parts, _NEUTRAL[name])
    out = {"sum": parts.sum, "mean": parts.sum, "prod": parts.prod, "max": parts.amax, "min": parts.amin}[name](2)
    if initial is not None:
        start = out.new_full((), initial)
        out = out + start if name in ("sum", "mean") else out * start if name == "prod" else (maximum if name == "max" else minimum)(out, start)
    if name == "mean":
        size = counts.reshape(-1, pieces, *ones)
        out = out / as_tensor_value(np.where(size == 0, math.nan if initial is None else 1.0, size).astype(data.dtype.np), data.device)
    return out.reshape(*batch, pieces, *rest)


FUNCTIONS["_segment_reduce"] = segment_reduce  # the name by which graph libraries call it
