"""Incomplete gamma functions for float32 on the CPU, by formulas of fixed length that become vector instructions.

XLA's go on until the last element has converged: thirty times slower. NIST Digital Library of Mathematical Functions, 8.11.4 and 8.9.2.
"""
from __future__ import annotations

import jax.numpy as jnp
from jax import lax

MOST = 40  # shape up to which so many terms leave less than 3e-9 of a result
_TERMS, _LEVELS = 48, 32


def _series(a, x):
    """1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..., as one quotient: numerator and denominator are scaled so that they stay near 1."""
    scale = 1 / (a + _TERMS)
    step, above, below = x * scale, jnp.ones_like(a), jnp.ones_like(a)
    for k in range(_TERMS, 0, -1):
        below = below * ((a + k) * scale)
        above = below + step * above
    return above / below


def _fraction(a, x):
    """1 / (x + 1 - a - (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), in the same way."""
    scale = 1 / (x + (2 * _LEVELS + 1))
    above, below = (x + (2 * _LEVELS + 1) - a) * scale, jnp.ones_like(a)
    for k in range(_LEVELS, 0, -1):
        above, below = ((x + (2 * k - 1) - a) * scale) * above - (k * (k - a)) * (scale * scale) * below, above
    return below / above * scale


def _short(a, x, lower: bool):
    near, inside = x < a + 1, (a >= 0) & (x >= 0)
    a = jnp.where(inside & (a <= MOST), a, 1)
    x = jnp.where(inside, x, jnp.nan)
    front = jnp.exp(a * jnp.log(x) - x - lax.lgamma(a + 1))  # x^a e^-x / Gamma(a + 1)
    made = front * jnp.where(near, _series(a, x), a * _fraction(a, x))
    return jnp.where(near == lower, made, 1 - made)


def incomplete(whole, a, x, lower: bool):
    """P(a, x) where `lower`, else Q(a, x), of doubles whose results are needed to float32's precision; whole(a, x) where some shape is large.
    Infinite arguments are the caller's."""
    def on_cpu(a, x):
        return lax.cond(jnp.all((a <= MOST) | ~jnp.isfinite(a)), lambda a, x: _short(a, x, lower), whole, a, x)
    return lax.platform_dependent(a, x, cpu=on_cpu, default=whole)
