"""asin, acos, atan and atan2 of large float32 arrays, in double precision.

XLA on the CPU calls the C library for each element, 20 to 70 ns; in vector instructions they take 1.5 to 4 ns. What is rounded to
float32 at the end is within 1e-9 of the exact number.
"""
from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .circular import in_doubles, polynomial

# atan(t) / t in t ** 2 for |t| <= 1, and asin(t) / t in t ** 2 for |t| <= 1 / 2: least relative errors
_ARCTAN = [0.9999999999318799, -0.33333331350300066, 0.19999903388392046, -0.14283847803783645, 0.11092192070750753, -0.08975399576579064,
           0.07231780285617932, -0.054020993022598454, 0.03390224212881819, -0.01588421695577672, 0.004755739849052173, -0.0006675787137236904]
_ARCSIN = [1.0000000002395277, 0.1666665738204169, 0.07500583591659037, 0.04450660021690293, 0.03187361567304938, 0.014236401351882408,
           0.03775610640849924]


def _angle(y, x):
    """atan2(y, x): of the smaller by the larger, then turned."""
    wide, across = y.astype(np.float64), x.astype(np.float64)
    up, along = abs(wide), abs(across)
    low, high = jnp.minimum(up, along), jnp.maximum(up, along)
    same = low == high  # two zeros or two infinities have no quotient
    t = jnp.where(same, (high != 0).astype(np.float64), low / jnp.where(same, 1.0, high))
    out = t * polynomial(t * t, _ARCTAN)
    out = jnp.where(up > along, math.pi / 2 - out, out)
    out = jnp.where(jnp.signbit(x), math.pi - out, out)
    return jnp.copysign(out, wide).astype(np.float32)


def _arctan(x):
    wide = x.astype(np.float64)
    size = abs(wide)
    t = jnp.minimum(size, 1 / jnp.maximum(size, 1e-300))
    out = t * polynomial(t * t, _ARCTAN)
    return jnp.copysign(jnp.where(size > 1, math.pi / 2 - out, out), wide).astype(np.float32)


def _halved(x):
    """x in doubles; where it is beyond 1 / 2; and of that the asin of sqrt((1 - |x|) / 2), else of |x|."""
    wide = x.astype(np.float64)
    size = abs(wide)
    beyond = size > 0.5
    square = jnp.where(beyond, (1 - size) / 2, size * size)
    return wide, beyond, jnp.where(beyond, jnp.sqrt(square), size) * polynomial(square, _ARCSIN)


def _arcsin(x):
    wide, beyond, out = _halved(x)
    return jnp.copysign(jnp.where(beyond, math.pi / 2 - 2 * out, out), wide).astype(np.float32)


def _arccos(x):
    wide, beyond, out = _halved(x)
    out = jnp.where(beyond, 2 * out, math.pi / 2 - out)  # of |x|
    return jnp.where(wide < 0, math.pi - out, out).astype(np.float32)


def _compiled(formula, exact, *slopes):
    """The formula where programs are compiled for the CPU, JAX's own function elsewhere; with derivatives `(tangent, out, *inputs)`."""
    @jax.custom_jvp
    def f(*given):
        return lax.platform_dependent(*given, cpu=formula, default=exact)
    f.defjvps(*slopes)
    return f


ARCTAN = _compiled(_arctan, jnp.arctan, lambda t, out, x: t / (1 + x * x))
ARCTAN2 = _compiled(_angle, jnp.arctan2, lambda t, out, y, x: t * x / (x * x + y * y), lambda t, out, y, x: -t * y / (x * x + y * y))
ARCSIN = _compiled(_arcsin, jnp.arcsin, lambda t, out, x: t * lax.rsqrt(1 - x * x))
ARCCOS = _compiled(_arccos, jnp.arccos, lambda t, out, x: -t * lax.rsqrt(1 - x * x))


def arctan(xp, x):
    """xp.arctan(x)"""
    return ARCTAN(x) if in_doubles(xp, x) else xp.arctan(x)


def arctan2(xp, y, x):
    """xp.arctan2(y, x)"""
    if xp is np:
        return np.arctan2(y, x)
    y, x = jnp.broadcast_arrays(y, x)
    return ARCTAN2(y, x) if in_doubles(xp, y) else xp.arctan2(y, x)


def arcsin(xp, x):
    """xp.arcsin(x)"""
    return ARCSIN(x) if in_doubles(xp, x) else xp.arcsin(x)


def arccos(xp, x):
    """xp.arccos(x)"""
    return ARCCOS(x) if in_doubles(xp, x) else xp.arccos(x)
