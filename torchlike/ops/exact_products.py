"""Products of integer matrices by products of floats, which BLAS has and which are as exact.

NumPy and XLA have a loop for integers, ten times slower than BLAS. A float64 product is exact while its sums stay below 2^53; larger
numbers are taken apart into pieces of so many bits that the sums of theirs do, and put together modulo 2^64, as integers wrap.
"""
from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np
from jax import lax

from .circular import has_doubles

MANY = 1 << 15  # multiplications from which on it is quicker
BITS = 53  # of an integer that a float64 has exactly


def _worth(x, y) -> bool:
    return x.dtype == y.dtype and x.dtype.kind in "iu" and x.ndim > 0 and y.ndim > 0 and x.size * (y.shape[-1] if y.ndim > 1 else 1) >= MANY


def _largest(x: np.ndarray) -> int:
    return max(abs(int(x.max())), abs(int(x.min())))


def _pieces(x: np.ndarray, width: int) -> list[np.ndarray]:
    bits, mask = x.astype(np.int64).view(np.uint64), np.uint64((1 << width) - 1)
    return [((bits >> np.uint64(at)) & mask).astype(np.float64) for at in range(0, 64, width)]


def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """np.matmul(x, y), of integers of one type."""
    k = x.shape[-1]
    if not _worth(x, y) or not y.size or x.dtype == np.uint64:
        return np.matmul(x, y)
    if _largest(x) * _largest(y) * k < 1 << BITS:
        return np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(np.int64).astype(x.dtype, copy=False)
    width = (BITS - k.bit_length()) // 2
    total = None
    for (i, a), (j, b) in itertools.product(enumerate(_pieces(x, width)), enumerate(_pieces(y, width))):
        if (at := width * (i + j)) < 64:
            part = np.matmul(a, b).astype(np.uint64) << np.uint64(at)
            total = part if total is None else np.add(total, part, out=total)
    return total.view(np.int64).astype(x.dtype, copy=False)


def product_xla(x, y):
    """jnp.matmul(x, y); on the CPU by floats where these are exact."""
    if not _worth(x, y) or x.dtype.itemsize < 4 or not has_doubles():
        return jnp.matmul(x, y)

    def on_cpu(x, y):
        wide = [a.astype(np.float64) for a in (x, y)]
        bound = jnp.abs(wide[0]).max() * jnp.abs(wide[1]).max() * x.shape[-1]
        return lax.cond(bound < 2.0 ** (BITS - 1), lambda: jnp.matmul(*wide).astype(x.dtype), lambda: jnp.matmul(x, y))
    return lax.platform_dependent(x, y, cpu=on_cpu, default=jnp.matmul)
