"""Powers of large arrays of floats of which some are negative.

The C library's pow, and the vector instructions that NumPy has for it, leave their quick path for each negative base. So sizes are
raised instead, and signs follow from the exponents: of a negative base an odd power is negative, one that is not whole is no number.
"""
from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.arrays import numpy_power
from .choosing import choose

MANY = 1 << 10  # elements from which on it is quicker


def _signed(xp, made, x, y):
    """x ** y, given `made` = |x| ** y."""
    whole = xp.floor(y) == y
    odd = y - 2 * xp.floor(y / 2) == 1
    made = choose(xp, odd, xp.copysign(made, x), made)  # of zeros as well
    return choose(xp, (x < 0) & xp.isfinite(x) & ~whole, xp.full_like(made, math.nan), made)


def _by_number(x, y):
    """The same in NumPy for one exponent."""
    made = np.power(np.abs(x), y)
    if np.floor(y) != y:
        return choose(np, (x < 0) & np.isfinite(x), math.nan, made)
    return np.copysign(made, x, out=made) if y % 2 == 1 else made


@jax.custom_jvp
def _power(x, y):
    return lax.platform_dependent(x, y, cpu=lambda x, y: _signed(jnp, lax.pow(abs(x), y), x, y), default=lax.pow)


@_power.defjvp
def _slope(primals, tangents):
    (x, y), (of_x, of_y) = primals, tangents
    made, zero = _power(x, y), jnp.zeros((), x.dtype)
    by_base = jnp.where(y == 0, zero, y * _power(x, jnp.where(y == 0, 1, y) - 1))
    by_exponent = jnp.where((x == 0) & (y >= 0), zero, made * jnp.log(jnp.where(x == 0, 1, x)))
    return made, of_x * by_base + of_y * by_exponent


def power(xp, x, y):
    """xp.power(x, y) of one dtype"""
    if x.size < MANY or x.dtype.kind != "f" or x.dtype.itemsize < 4 or x.dtype != y.dtype:
        return numpy_power(x, y) if xp is np else xp.power(x, y)
    if xp is not np:
        return _power(*jnp.broadcast_arrays(x, y))
    if x.__class__ is not np.ndarray or not (x < 0).any():
        return numpy_power(x, y)
    if not y.ndim:
        return _by_number(x, y)
    return _signed(np, np.power(np.abs(x), y), x, y)
