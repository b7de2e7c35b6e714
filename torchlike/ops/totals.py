"""Sums and products over the last dimensions of large arrays in NumPy.

NumPy's own sum of a long row takes three times as long as BLAS's product with ones, its product ten times as long as products of
columns do. Rows are cut so that no more numbers are added up one after the other than NumPy would.
"""
from __future__ import annotations

import numpy as np

MANY = 1 << 13  # elements from which on it is quicker
_LONGEST, _SHORTEST = 1 << 11, 1 << 6  # of rows that are summed at once
_LANES, _MORE_LANES = 1 << 6, 1 << 10  # products side by side: of short rows, of long ones


def trailing(shape: tuple, dims: tuple) -> int | None:
    """How many elements lie side by side that are reduced together, where `dims` are the last dimensions (but for those of size one); None: they are not."""
    reduced = {d % len(shape) for d in dims}
    n, side_by_side = 1, True
    for d in range(len(shape) - 1, -1, -1):
        if shape[d] == 1:
            continue
        if d not in reduced:
            side_by_side = False
        elif side_by_side:
            n *= shape[d]
        else:
            return None
    return n


def _rows(x: np.ndarray, dims: tuple) -> np.ndarray | None:
    """x as a matrix whose rows are reduced; None where NumPy's own way is taken."""
    if x.size < MANY or not dims or x.dtype.char not in "fd" or not x.flags.c_contiguous:
        return None
    n = trailing(x.shape, dims)
    return None if n is None else x.reshape(-1, n)


def shaped(made, x, dims: tuple, keepdims: bool):
    """`made`, a number per row, in the shape of a reduction of x."""
    reduced = {d % x.ndim for d in dims}
    return made.reshape([1 if d in reduced else n for d, n in enumerate(x.shape) if keepdims or d not in reduced])


def total(x: np.ndarray, dims: tuple, keepdims: bool) -> np.ndarray:
    """np.add.reduce(x, dims, keepdims=keepdims)"""
    rows = _rows(x, dims)
    if rows is None or rows.shape[1] < _SHORTEST:
        return np.add.reduce(x, dims, keepdims=keepdims)
    m, n = rows.shape
    if n <= _LONGEST:
        return shaped(_of_rows(rows), x, dims, keepdims)
    k = n & -n  # the power of two in n
    if k >= _SHORTEST:
        k = min(k, _LONGEST)
        return shaped(np.add.reduce(_of_rows(rows.reshape(-1, k)).reshape(m, n // k), 1), x, dims, keepdims)
    if m > 1:
        return np.add.reduce(x, dims, keepdims=keepdims)
    whole = n - n % _LONGEST
    made = np.add.reduce(_of_rows(rows[0, :whole].reshape(-1, _LONGEST))) + np.add.reduce(rows[0, whole:])
    return shaped(made, x, dims, keepdims)


def _of_rows(rows: np.ndarray) -> np.ndarray:
    return rows @ np.ones(rows.shape[1], rows.dtype)


def product(x: np.ndarray, dims: tuple, keepdims: bool) -> np.ndarray:
    """np.multiply.reduce(x, dims, keepdims=keepdims)"""
    rows = _rows(x, dims)
    if rows is None or rows.shape[1] < 4 * _LANES:
        return np.multiply.reduce(x, dims, keepdims=keepdims)
    m, n = rows.shape
    lanes = _MORE_LANES if n >= _MORE_LANES ** 2 // 32 else 2 * _LANES if m >= 2 * _LANES else _LANES
    whole = n - n % lanes
    made = np.multiply.reduce(rows[:, :whole].reshape(m, -1, lanes), 1)
    made = np.multiply.reduce(made, 1) if m < 2 * _LANES else np.multiply.reduce(np.ascontiguousarray(made.T), 0)
    return shaped(made * np.multiply.reduce(rows[:, whole:], 1), x, dims, keepdims)
