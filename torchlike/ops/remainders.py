"""C's fmod of float32 numbers, exact: by a quotient in doubles, where NumPy and XLA divide bit by bit."""
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .blocks import in_blocks
from .circular import in_doubles

FEW = 1 << 12  # elements from which on it is quicker
_EXACT = 2.0 ** 29  # a whole quotient below it times a float32 fits a float64


def fmod(xp, x, y):
    """xp.fmod(x, y), to the bit."""
    if xp is not np:
        x, y = jnp.broadcast_arrays(x, y)
        return _compiled(x, y) if in_doubles(xp, x) else xp.fmod(x, y)
    if x.dtype != np.float32 or max(x.size, y.size) < FEW:
        return xp.fmod(x, y)
    return _by_float64(xp, x, y)


@in_blocks
def _by_float64(xp, x, y):
    with np.errstate(all="ignore"):
        a, b = x.astype(np.float64), y.astype(np.float64)
        quotient = np.trunc(a / b)
        if not (abs(quotient) < _EXACT).all() or np.isinf(b).any():
            return np.fmod(x, y)
        rest = a - quotient * b
        over = rest * a < 0  # a quotient that was rounded up to a whole number
        if over.any():
            rest = np.where(over, rest + np.copysign(b, a), rest)
        return np.copysign(rest, a).astype(np.float32)


def _rest(x, y):
    a, b = x.astype(np.float64), y.astype(np.float64)
    rest = a - jnp.trunc(a / b) * b
    rest = jnp.where(rest * a < 0, rest + jnp.copysign(b, a), rest)
    rest = jnp.where(jnp.isinf(b) & jnp.isfinite(a), a, rest)
    return jnp.copysign(rest, a).astype(np.float32)


def _too_large(x, y):
    """Whether any quotient may be."""
    return jnp.any((abs(x) * np.float32(2 / _EXACT) >= abs(y)) & (y != 0) & jnp.isfinite(x))


@jax.custom_jvp
def _compiled(x, y):
    def on_cpu(x, y):
        return lax.cond(_too_large(x, y), jnp.fmod, _rest, x, y)
    return lax.platform_dependent(x, y, cpu=on_cpu, default=jnp.fmod)


_compiled.defjvps(lambda t, out, x, y: t, lambda t, out, x, y: -t * jnp.trunc(x / y))
