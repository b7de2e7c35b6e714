"""Arrays that XLA's CPU backend really makes. It drops optimization barriers before it fuses, but never fuses across a branch."""
from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _never(x):
    """False, which XLA does not know."""
    first = x[(0,) * x.ndim]
    return (first.real if jnp.issubdtype(first.dtype, jnp.inexact) else first.astype(np.float32)) < -np.inf


def once(f: Callable, *args):
    """f(*args), of arrays that have elements, in a branch that is always taken, which XLA does not know: else it computes what it
    finds cheap again for each use, and for each part that is used."""
    return lax.cond(_never(args[0]), lambda *args: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(f, *args)), f, *args)


def materialized(x):
    """x as an array of its own: XLA walks over a vector as a matrix ten times slower than over a matrix."""
    return once(lambda x: x, x) if x.size else x


def framed(x, padding, known):
    """x with zeros around, (low, high) of each axis, written into an array of zeros. Padding is computed element by element, each with a choice, where
    what makes x is computed inside: eight times slower than in vectors if that is an exponential. At a place that XLA knows it would pad
    all the same, so the place depends on the array `known`, of which it takes an element."""
    if not any(map(any, padding)):
        return x
    place = [np.int32(lo) for lo, _ in padding]
    place[-1] = place[-1] + lax.convert_element_type(_never(known), np.int32)
    return lax.dynamic_update_slice(jnp.zeros([n + lo + hi for n, (lo, hi) in zip(x.shape, padding)], x.dtype), x, place)
