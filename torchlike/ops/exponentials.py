"""expm1, log1p, sinh, cosh and atanh of large float32 arrays in NumPy; softplus, and expm1 below 0, for activations and losses.

NumPy calls the C library for each float, at 15 to 30 ns. Its exponential and logarithm of doubles take 5, and with 29 more digits the
plain formulas do: what 1 + x loses of an x above _SMALL is far below a float's last place. Activations and losses get along with
5 units in the last place, for which a few float operations do.
"""
from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .blocks import in_blocks
from .limits import at_least

MANY = 1 << 10  # elements from which on this is quicker
_BLOCK = 1 << 13  # elements whose doubles stay in the cache
_SMALL = np.float32(2.0 ** -20)  # below it two terms of the series do
# log((1 + t) / (1 - t)) / t in t ** 2 for 0 <= t <= 1 / 3: least absolute error
_LOGARITHM = np.array([2.000000008078732, 0.6666631014522078, 0.40025114308149035, 0.2795766601833252, 0.28191546220615454], np.float32)


def _expm1(x, spare):
    np.exp(x, out=x)
    return np.subtract(x, 1, out=x)


def _log1p(x, spare):
    np.add(x, 1, out=x)
    return np.log(x, out=x)


def _halves(x, spare, combine):
    """exp(x) / 2 and exp(-x) / 2, combined."""
    np.exp(x, out=x)
    np.divide(0.5, x, out=spare)
    np.multiply(x, 0.5, out=x)
    return combine(x, spare, out=x)


def _atanh(x, spare):
    np.subtract(1, x, out=spare)
    np.add(x, 1, out=x)
    np.divide(x, spare, out=x)
    np.log(x, out=x)
    return np.multiply(x, 0.5, out=x)


def _function(name: str, formula: Callable, series: Callable | None) -> Callable:
    """`(xp, x)`: xp.<name>(x)"""
    def by_doubles(x):
        flat = x.reshape(-1)
        out = np.empty_like(flat)
        wide, spare = np.empty((2, min(_BLOCK, flat.size)))
        for i in range(0, flat.size, _BLOCK):
            part, made = flat[i:i + _BLOCK], out[i:i + _BLOCK]
            w = wide[:part.size]
            np.copyto(w, part)
            np.copyto(made, formula(w, spare[:part.size]), casting="unsafe")
            if series is not None:
                np.copysign(made, part, out=made)  # of zeros
                small = (np.abs(part) < _SMALL) & (part != 0)
                if small.any():
                    made[small] = series(part[small].astype(np.float64))
        return out.reshape(x.shape)

    def f(xp, x):
        if xp is np and x.__class__ is np.ndarray and x.size >= MANY and x.dtype == np.float32:
            return by_doubles(x)
        return getattr(xp, name)(x)
    f.__name__ = f.__qualname__ = name
    return f


expm1 = _function("expm1", _expm1, lambda x: x * (1 + x / 2))
log1p = _function("log1p", _log1p, lambda x: x * (1 - x / 2))
sinh = _function("sinh", lambda x, spare: _halves(x, spare, np.subtract), lambda x: x)
cosh = _function("cosh", lambda x, spare: _halves(x, spare, np.add), None)
arctanh = _function("arctanh", _atanh, lambda x: x)


def _many(xp, x) -> bool:
    return xp is np and x.__class__ is np.ndarray and x.size >= MANY and x.dtype == np.float32


def _two_parts(xp, x):
    return xp.maximum(x, np.asarray(0, x.dtype)) + log1p(xp, xp.exp(-xp.abs(x)))


@jax.custom_jvp
def _smooth(x):
    """Both parts bend at 0, and JAX would see that."""
    return _two_parts(jnp, x)


_smooth.defjvps(lambda t, out, x: t * lax.logistic(x))


@in_blocks
def softplus(xp, x):
    """log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|); for the last, t = e / (2 + e) in the series of _LOGARITHM"""
    if not _many(xp, x):
        return _two_parts(np, x) if xp is np else _smooth(x)
    e = np.abs(x)
    np.negative(e, out=e)
    np.exp(e, out=e)
    t = np.add(e, np.float32(2))
    np.divide(e, t, out=t)
    square = np.multiply(t, t, out=e)
    made = square * _LOGARITHM[-1]
    for c in _LOGARITHM[-2:0:-1]:
        np.add(made, c, out=made)
        np.multiply(made, square, out=made)
    np.add(made, _LOGARITHM[0], out=made)
    np.multiply(made, t, out=made)
    return np.add(made, at_least(np, x, np.float32(0)), out=made)


def expm1_below(xp, x):
    """expm1(x) of x <= 0: by t = tanh(x / 2), which NumPy has in vector instructions, 2 t / (1 - t)"""
    if not _many(xp, x):
        return expm1(xp, x)
    t = np.multiply(x, np.float32(0.5))
    np.tanh(t, out=t)
    rest = np.subtract(np.float32(1), t)
    np.divide(t, rest, out=t)
    return np.add(t, t, out=t)
