"""Products of matrices with transpositions, as XLA's CPU backend computes them soonest.

It folds every transposition around a product into it. What is then read down the columns (the left side; both sides, where the result is transposed) it
fetches element by element, slowest where rows are a multiple of 1,024 bytes or the result has few columns (benchmarks/product_forms.py: random shapes in
each form; jax 0.10.2). So transpositions that cost are kept apart from the product.

Products of bfloat16 numbers are computed in float32 from converted arrays, which takes twice the product's time, unless both sides lie row by row, as XLA sees
it before it chooses layouts; then they take less time than float32's on processors that multiply bfloat16 numbers themselves.

For each of a batch's small matrices it calls a routine that takes 1.5 us, 20 to 90 times as long as four by four need; so products of many of them are written as
elementwise sums."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core import dtype as dt
from .._core.processor import flags
from .materializing import materialized, once

SMALL = 64  # rows and columns of a batch's matrices that are read down the columns as soon
SHALLOW = 96  # products in a sum up to which a transposed product takes less time than transposing the result
NARROW = 16  # columns that fill no vector instruction
FEW_ROWS = ((4, 128), (8, 256), (32, 512), (64, 1024))  # rows on the left, and the columns from which on they had better be the right side
MANY_ROWS = 16  # of bfloat16 numbers on the left, from which on the right side, if larger, had better be read as it lies, and the result be transposed
LANES = 8  # rows that are as soon as fewer of them, but for LANES / 2
FEW_TERMS, FEW_COLUMNS, PAIRS_COLUMNS, MANY = 8, 16, 8, 8  # terms of a sum; columns of the result; those where two terms are summed; matrices
MULTIPLY_BFLOAT16 = ("avx512_bf16", "amx_bf16")  # flags of processors


def swap(x):
    return x.swapaxes(-1, -2)


apart = lax.optimization_barrier  # an array that is made before what reads it


def is_cpu(xp, plan) -> bool:
    """Whether a kernel computes with XLA on the CPU."""
    return xp is not np and plan.device.type == "cpu"


def takes(x) -> bool:
    """Whether products of x are computed in its own precision."""
    return x.dtype.kind == "f" and x.dtype.itemsize > 2 or takes_bfloat16(x)


def takes_bfloat16(x) -> bool:
    return x.dtype == dt.bfloat16.np and not flags().isdisjoint(MULTIPLY_BFLOAT16)


def transposed(x):
    """x^T, made by itself: by the way of an elementwise computation it is read column by column."""
    return apart(swap(materialized(x) if x.ndim > 2 and min(x.shape[-2:]) > SMALL else x))


def are_small(x, y) -> bool:
    """Whether x y is a product of many small matrices, floating point or complex."""
    if x.ndim < 3 or y.ndim < 3 or x.dtype.kind not in "fc" or x.dtype.itemsize < 4:
        return False
    (m, k), n = x.shape[-2:], y.shape[-1]
    return 1 < k <= FEW_TERMS and m > 1 and 1 < n <= (FEW_COLUMNS if k > 2 else PAIRS_COLUMNS) and math.prod(jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])) >= MANY


def serves(x, y) -> bool:
    """Whether `product` has a form of its own for x y."""
    return takes(x) or are_small(x, y)


def _sum_of_outer(x, y):
    return sum(x[..., :, k, None] * y[..., k, None, :] for k in range(x.shape[-1]))


def of_small(x, y):
    """x y where `are_small`; made once, as XLA would compute it again for each of its elements' readers."""
    return once(_sum_of_outer, x, y)


def product(x, y):
    """x y: (..., m, k), (..., k, n) to (..., m, n). Few columns come first: if x is transposed as well, it is then read as it lies."""
    if are_small(x, y):
        return of_small(x, y)
    (m, k), n = x.shape[-2:], y.shape[-1]
    if takes_bfloat16(x):
        return jnp.matmul(x, y) if y.ndim > 2 else unrounded(x.reshape(math.prod(x.shape[:-1]), k), y).astype(x.dtype).reshape(*x.shape[:-1], n)
    if n <= NARROW and 4 * n <= m and k > SHALLOW:
        return swap(apart(jnp.matmul(apart(swap(y)), swap(x))))
    return _of(apart(x), y)


def unrounded(x, y, along: int = 0):
    """x y in float32 of bfloat16 matrices: (m, k), (k, n) to (m, n); `along` 1 is x y^T, y (n, k)."""
    return apart(lax.dot_general(_by_rows(x), _by_rows(y), (((1,), (along,)), ((), ())), preferred_element_type=np.float32))


def matmul(xp, x, y):
    """xp's product of matrices, in kernels that are not told their device."""
    if xp is np:
        return np.matmul(x, y)
    if are_small(x, y):
        return lax.platform_dependent(x, y, cpu=of_small, default=jnp.matmul)
    if not takes_bfloat16(x):
        return jnp.matmul(x, y)
    return lax.platform_dependent(x, y, cpu=lambda x, y: unrounded(x, y).astype(x.dtype), default=jnp.matmul)


def by_rows_of(xp, w) -> Callable:
    """x to x w^T, in such kernels."""
    if xp is np or not takes_bfloat16(w):
        turned = w.T
        return lambda x: xp.matmul(x, turned)
    return lambda x: lax.platform_dependent(x, w, cpu=lambda x, w: of_rows(x, w).astype(x.dtype), default=lambda x, w: jnp.matmul(x, w.T))


def _by_rows(x):
    """x as it lies row by row, also to XLA's first passes: a transposition's result lies down the columns to them, one of a vector cannot."""
    return apart(apart(x).reshape(-1)).reshape(x.shape)


def _of(x, y):
    xy = jnp.matmul(x, y)
    return apart(xy) if x.shape[-1] > SHALLOW else xy


def of_columns(x, ys: Sequence) -> list:
    """x^T y for each y: (..., k, m), (..., k, n) to (..., m, n). The smaller matrix is transposed, and the result if that was y."""
    k, m = x.shape[-2:]
    if takes_bfloat16(x) and x.ndim == 2:
        return [unrounded(swap(x), y).astype(x.dtype) for y in ys]
    if x.ndim > 2 and max(k, m) <= SMALL:
        return [of_small(swap(x), y) if are_small(swap(x), y) else jnp.matmul(swap(x), y) for y in ys]
    smaller = [3 * y.shape[-1] * (k + m) < m * k for y in ys]
    turned = None if all(smaller) else transposed(x)
    return [swap(apart(jnp.matmul(transposed(y), x))) if small else _of(turned, y) for y, small in zip(ys, smaller)]


def of_rows(x, y):
    """x y^T: (m, k), (n, k) to (m, n); of bfloat16 matrices in float32."""
    (m, k), n = x.shape, y.shape[0]
    if takes_bfloat16(x):
        return swap(unrounded(y, x, along=1)) if MANY_ROWS <= m <= n else unrounded(x, y, along=1)
    least = next((least for rows, least in FEW_ROWS if m <= rows), None)
    if least is None or k < least or n < max(m, SMALL) or x.dtype != np.float32:
        return jnp.matmul(x, swap(y))
    more = -m % LANES if m > LANES // 2 else 0
    if more:
        x = apart(jnp.pad(x, ((0, more), (0, 0))))
    return swap(apart(jnp.matmul(y, swap(x))))[:m]
