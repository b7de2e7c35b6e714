"""Counter-based random bits for dropout: pure functions of (seed, row, column), the same in kernels and references.

Per row, Threefry-2x32 (Salmon et al. 2011) turns (seed, row) into two words; per element, a multiply-xorshift finaliser
mixes them with the column. That is about 10 integer operations an element against about 70 for Threefry per element:
attention's matrix products would wait for the latter.
"""

import jax
import jax.numpy as jnp
import numpy as np

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_RESOLUTION = 24  # bits of the uniform that is compared with the rate


def threefry_2x32(k0, k1, x0, x1):
    """20 rounds; all arguments uint32 (arrays or scalars), two uint32 words out."""
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))
            x1 = x1 ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def row_keys(seed0, seed1, row):
    """Two words per row. `row` is any integer array that numbers rows over the whole problem."""
    row = row.astype(jnp.uint32)
    return threefry_2x32(seed0.astype(jnp.uint32), seed1.astype(jnp.uint32), row, jnp.zeros_like(row))


def element_bits(word0, word1, column):
    """uint32 bits, broadcasting the two row words against the columns."""
    x = (column.astype(jnp.uint32) * np.uint32(0x9E3779B9)) ^ word0
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) + word1
    x = x * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def keep(word0, word1, column, rate: float):
    """True with probability 1 - rate (to 24 bits)."""
    uniform = (element_bits(word0, word1, column) >> np.uint32(32 - _RESOLUTION)).astype(jnp.int32)
    return uniform >= round(rate * (1 << _RESOLUTION))


def seed_words(seed) -> jax.Array:
    """uint32[2] from an integer, an integer scalar array, a uint32[2] array or a JAX PRNG key."""
    if isinstance(seed, int):
        return jnp.asarray([seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF], jnp.uint32)
    if not hasattr(seed, "dtype"):
        raise TypeError(f"seed must be an integer, a JAX key or an array, got {type(seed).__name__}")
    if jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        seed = jax.random.key_data(seed)
    seed = jnp.asarray(seed)
    if not jnp.issubdtype(seed.dtype, jnp.integer):
        raise TypeError(f"seed must hold integers, got {seed.dtype}")
    if seed.ndim == 0:
        low = seed.astype(jnp.uint32)
        high = (seed >> 32).astype(jnp.uint32) if seed.dtype.itemsize == 8 else jnp.zeros((), jnp.uint32)
        return jnp.stack([low, high])
    if seed.ndim != 1 or seed.shape[0] not in (2, 4):
        raise ValueError(f"seed must be a scalar or hold 2 (or 4) words, got shape {seed.shape}")
    words = seed.astype(jnp.uint32).reshape(-1, 2)
    return words[0] if words.shape[0] == 1 else words[0] ^ words[1]
