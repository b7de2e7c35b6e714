"""sin, cos, tan and 1 / sqrt of large float32 arrays in programs compiled for the CPU.

XLA calls the C library for the sine of each element, and makes 1 / sqrt(x) one instruction that it then refines: 20 and 10 ns
an element. In vector instructions they take 2 and 0.5 ns. Half a unit in the last place is lost at most beside the rounding itself.
"""
from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

MANY = 1 << 12  # elements from which on it is quicker
_FAR = 2.0 ** 28  # beyond it a multiple of pi / 2 has too many bits
_HALF_PI, _REST = float.fromhex("0x1.921fb5p+0"), 1.5893254773528196e-08  # pi / 2 = _HALF_PI, of 25 bits, + _REST
# Taylor's coefficients of sin(x) / x and of cos(x) in x ** 2, which do for |x| <= pi / 4
_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(5)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(6)]


def polynomial(x, coefficients):
    """The sum of coefficients[k] * x ** k."""
    y = coefficients[-1]
    for c in coefficients[-2::-1]:
        y = y * x + c
    return y


def _reduced(x) -> tuple:
    """How many quarters of a turn are nearest to float32 x, |x| <= _FAR; and sine and cosine of the rest, in double precision."""
    wide = x.astype(np.float64)
    k = jnp.round(wide * (2 / math.pi))
    rest = (wide - k * _HALF_PI) - k * _REST
    square = rest * rest
    return k.astype(np.int32), rest * polynomial(square, _SINE), polynomial(square, _COSINE)


def _turned(x, quarters: int):
    """sin(x + quarters * pi / 2)"""
    k, sine, cosine = _reduced(x)
    k = k + quarters
    value = jnp.where((k & 1) == 0, sine, cosine)
    return jnp.where((k & 2) == 0, value, -value).astype(np.float32)


def _slope(x):
    """tan(x)"""
    k, sine, cosine = _reduced(x)
    straight = (k & 1) == 0
    return (jnp.where(straight, sine, -cosine) / jnp.where(straight, cosine, sine)).astype(np.float32)


def _on_cpu(x, formula, exact):
    return lax.cond(jnp.any(jnp.abs(x) > _FAR), exact, formula, x)


@jax.custom_jvp
def _sine(x):
    return lax.platform_dependent(x, cpu=lambda x: _on_cpu(x, lambda x: _turned(x, 0), jnp.sin), default=jnp.sin)


@jax.custom_jvp
def _cosine(x):
    return lax.platform_dependent(x, cpu=lambda x: _on_cpu(x, lambda x: _turned(x, 1), jnp.cos), default=jnp.cos)


@jax.custom_jvp
def _tangent(x):
    return lax.platform_dependent(x, cpu=lambda x: _on_cpu(x, _slope, jnp.tan), default=jnp.tan)


_sine.defjvps(lambda t, out, x: t * _cosine(x))
_cosine.defjvps(lambda t, out, x: -t * _sine(x))
_tangent.defjvps(lambda t, out, x: t * (1 + out * out))


def _by_reciprocal(x):
    """sqrt(1 / x), of which XLA makes no 1 / sqrt. Reciprocals of the smallest and the largest numbers leave the range, so these are
    scaled; the root of 1 / -0 would be no number."""
    small, large = x < 2.0 ** -100, x > 2.0 ** 100
    scale, back = (jnp.where(small, np.float32(a), jnp.where(large, np.float32(1 / a), np.float32(1))) for a in (2.0 ** 48, 2.0 ** 24))
    return jnp.where(x == 0, 1 / x, jnp.sqrt(1 / (x * scale)) * back)


@jax.custom_jvp
def _rsqrt(x):
    return lax.platform_dependent(x, cpu=_by_reciprocal, default=lambda x: 1 / jnp.sqrt(x))


_rsqrt.defjvps(lambda t, out, x: np.float32(-0.5) * t * out * out * out)


def _pays(xp, x) -> bool:
    return xp is not np and x.dtype == np.float32 and x.size >= MANY


def has_doubles() -> bool:
    """Not under a user's own `jax.jit`, where JAX may have none."""
    return jax.dtypes.canonicalize_dtype(np.float64) == np.float64


def in_doubles(xp, x) -> bool:
    """Whether float32 x is large enough for the detour, and JAX has doubles."""
    return _pays(xp, x) and has_doubles()


def sine(xp, x):
    """xp.sin(x)"""
    return _sine(x) if in_doubles(xp, x) else xp.sin(x)


def cosine(xp, x):
    """xp.cos(x)"""
    return _cosine(x) if in_doubles(xp, x) else xp.cos(x)


def tangent(xp, x):
    """xp.tan(x)"""
    return _tangent(x) if in_doubles(xp, x) else xp.tan(x)


def reciprocal_root(xp, x):
    """1 / xp.sqrt(x)"""
    return _rsqrt(x) if _pays(xp, x) else 1 / xp.sqrt(x)
