"""Arrays that XLA's CPU backend really makes. It drops optimization barriers before it fuses."""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax


def materialized(x):
    """x as an array of its own: XLA computes what it finds cheap once per use and per window, and walks over a vector as a matrix ten
    times slower than over a matrix. It never fuses across a branch."""
    first = x[(0,) * x.ndim]
    never = (first.astype(np.float32) if jnp.issubdtype(x.dtype, jnp.integer) else first.real) < -np.inf
    return lax.cond(never, lambda x: -x, lambda x: x, x)
