"""Numbers cut off at a bound, in either library."""
from __future__ import annotations

import numpy as np

_BLOCK = 1 << 14  # elements


def at_least(xp, x, low):
    """The larger of x and low, and x where they are equal: torch's bounds leave -0.0 as it is."""
    return _bounded(x, (np.maximum, low)) if xp is np else xp.where((x < low) | (low != low), low, x)


def at_most(xp, x, high):
    """The smaller of x and high, and x where they are equal."""
    return _bounded(x, (np.minimum, high)) if xp is np else xp.where((x > high) | (high != high), high, x)


def within(xp, x, low, high):
    """at_most of at_least; a bound may be None."""
    if xp is np:
        return _bounded(x, *[(ufunc, bound) for ufunc, bound in ((np.maximum, low), (np.minimum, high)) if bound is not None])
    if low is not None:
        x = at_least(xp, x, low)
    return x if high is None else at_most(xp, x, high)


def _bounded(x, *bounds: tuple):
    """ufunc(bound, x) for each (ufunc, bound): one number beside a large array is given as an array, for which NumPy has vector instructions;
    np.clip has them for numbers, but takes a bound of zero for a zero of the other sign."""
    if x.size < _BLOCK or not x.flags.c_contiguous or any(np.ndim(b) or np.result_type(b, x) != x.dtype for _, b in bounds):
        for ufunc, bound in bounds:
            x = ufunc(bound, x)
        return x
    if x.dtype.kind == "f" and x.dtype.itemsize >= 4 and not any(b == 0 or b != b for _, b in bounds):
        limit = dict(bounds)
        return np.clip(x, x.dtype.type(limit.get(np.maximum, -np.inf)), x.dtype.type(limit.get(np.minimum, np.inf)))
    bounds, out = [(ufunc, np.full(_BLOCK, bound, x.dtype)) for ufunc, bound in bounds], np.empty(x.shape, x.dtype)
    flat, made = x.reshape(-1), out.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        part, filled = flat[start:start + _BLOCK], made[start:start + _BLOCK]
        for ufunc, bound in bounds:
            part = ufunc(bound[:part.size], part, out=filled)
    return out
