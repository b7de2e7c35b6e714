"""Arrays that XLA's CPU backend really makes. It drops optimization barriers before it fuses, but never fuses across a branch."""
from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def once(f: Callable, *args):
    """f(*args), of arrays that have elements, in a branch that is always taken, which XLA does not know: else it computes what it
    finds cheap again for each use, and for each part that is used."""
    first = args[0][(0,) * args[0].ndim]
    never = (first.real if jnp.issubdtype(first.dtype, jnp.inexact) else first.astype(np.float32)) < -np.inf
    return lax.cond(never, lambda *args: jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(f, *args)), f, *args)


def materialized(x):
    """x as an array of its own: XLA walks over a vector as a matrix ten times slower than over a matrix."""
    return once(lambda x: x, x)
