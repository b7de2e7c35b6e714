"""Products of matrices with transpositions, as XLA's CPU backend computes them soonest.

It folds every transposition around a product into it. What is then read down the columns (the left side; both sides, where the result is transposed) it
fetches element by element, slowest where rows are a multiple of 1,024 bytes or the result has few columns (benchmarks/product_forms.py: random shapes in
each form; jax 0.10.2). So transpositions that cost are kept apart from the product."""
from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax

from .materializing import materialized

SMALL = 64  # rows and columns of a batch's matrices that are read down the columns as soon
SHALLOW = 96  # products in a sum up to which a transposed product takes less time than transposing the result
NARROW = 16  # columns that fill no vector instruction
FEW_ROWS = ((4, 128), (8, 256), (32, 512), (64, 1024))  # rows on the left, and the columns from which on they had better be the right side
LANES = 8  # rows that are as soon as fewer of them, but for LANES / 2


def swap(x):
    return x.swapaxes(-1, -2)


apart = lax.optimization_barrier  # an array that is made before what reads it


def is_cpu(xp, plan) -> bool:
    """Whether a kernel computes with XLA on the CPU."""
    return xp is not np and plan.device.type == "cpu"


def takes(x) -> bool:
    """Whether products of x are computed in its own precision."""
    return x.dtype.kind == "f" and x.dtype.itemsize > 2


def transposed(x):
    """x^T, made by itself: by the way of an elementwise computation it is read column by column."""
    return apart(swap(materialized(x) if x.ndim > 2 and min(x.shape[-2:]) > SMALL else x))


def product(x, y):
    """x y: (..., m, k), (..., k, n) to (..., m, n). Few columns come first: if x is transposed as well, it is then read as it lies."""
    (m, k), n = x.shape[-2:], y.shape[-1]
    if n <= NARROW and 4 * n <= m and k > SHALLOW:
        return swap(apart(jnp.matmul(apart(swap(y)), swap(x))))
    return _of(apart(x), y)


def _of(x, y):
    xy = jnp.matmul(x, y)
    return apart(xy) if x.shape[-1] > SHALLOW else xy


def of_columns(x, ys: Sequence) -> list:
    """x^T y for each y: (..., k, m), (..., k, n) to (..., m, n). The smaller matrix is transposed, and the result if that was y."""
    k, m = x.shape[-2:]
    if x.ndim > 2 and max(k, m) <= SMALL:
        return [jnp.matmul(swap(x), y) for y in ys]
    smaller = [3 * y.shape[-1] * (k + m) < m * k for y in ys]
    turned = None if all(smaller) else transposed(x)
    return [swap(apart(jnp.matmul(transposed(y), x))) if small else _of(turned, y) for y, small in zip(ys, smaller)]


def of_rows(x, y):
    """x y^T: (m, k), (n, k) to (m, n)."""
    (m, k), n = x.shape, y.shape[0]
    least = next((least for rows, least in FEW_ROWS if m <= rows), None)
    if least is None or k < least or n < max(m, SMALL) or x.dtype != np.float32:
        return jnp.matmul(x, swap(y))
    more = -m % LANES if m > LANES // 2 else 0
    if more:
        x = apart(jnp.pad(x, ((0, more), (0, 0))))
    return swap(apart(jnp.matmul(y, swap(x))))[:m]
