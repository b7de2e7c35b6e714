"""Where the extremes of traced arrays are."""
from __future__ import annotations

import numpy as np
from jax import lax
from jax import numpy as jnp


def place_of(x, dim: int, keepdim: bool, largest: bool):
    """The first place of the extreme along dim. Indices and numbers of 64 bits would be JAX's own only where it compiles under its setting for these,
    which is the user's where the user's jax.jit compiles."""
    dim %= x.ndim
    if x.shape[dim] < 1 << 31 and x.dtype.itemsize == 8:
        return first_found(x, dim, keepdim, largest)
    index = (lax.argmax if largest else lax.argmin)(x, dim, np.int32 if x.shape[dim] < 1 << 31 else np.int64)
    return lax.expand_dims(index, (dim,)) if keepdim else index


def first_found(x, dim: int, keepdim: bool, largest: bool):
    """The extreme first, then its first place: XLA has vector instructions for either, and none for both at once."""
    found = x == (jnp.max if largest else jnp.min)(x, axis=dim, keepdims=True)
    if x.dtype.kind not in "iu":
        found |= x != x
    places = lax.broadcasted_iota(np.int32, x.shape, dim)
    return jnp.min(jnp.where(found, places, np.int32(x.shape[dim])), axis=dim, keepdims=keepdim)
