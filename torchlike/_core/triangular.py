"""Triangular systems in NumPy."""
from __future__ import annotations

import numpy as np

# Of these it pays to take one column, or one row, after the other. OpenBLAS would start its threads, even for two equations, and wait for them:
# 15 ms for 2 us where other processes have the cores.
FEW_EQUATIONS, FEW_STEPS = 128, 32


def solve_triangle(a: np.ndarray, b: np.ndarray, lower: bool, unit: bool) -> np.ndarray:
    """x with a x = b: a triangle (n, n), its diagonal taken as ones where `unit`, and columns b (n, k)."""
    n, columns = b.shape
    if not b.size:
        return b
    if not unit and not np.diagonal(a).all():
        return substitute(a, b, lower, unit)
    few = n <= FEW_EQUATIONS
    if few and n < columns and n <= FEW_STEPS:
        return substitute(a, b, lower, unit)
    turned = not a.flags.f_contiguous  # LAPACK reads columns: the transpose of rows
    if turned:
        a, lower = a.T, not lower
    if few and columns <= FEW_STEPS:
        from scipy.linalg import get_blas_funcs
        trsv = get_blas_funcs("trsv", dtype=b.dtype)
        x = np.empty((n, columns), b.dtype, "F")
        for k in range(columns):
            x[:, k] = trsv(a, b[:, k], lower=lower, trans=turned, diag=unit)
        return x
    from scipy.linalg import get_lapack_funcs
    trtrs = get_lapack_funcs("trtrs", dtype=b.dtype)
    return trtrs(a, b, lower=lower, trans=turned, unitdiag=unit)[0]


def substitute(a: np.ndarray, b: np.ndarray, lower: bool, unit: bool) -> np.ndarray:
    """The same row by row, for batches (..., n, n) too, dividing by zero where the diagonal is zero (LAPACK's driver stops there, torch's does not)."""
    x, n = b.copy(), a.shape[-1]
    with np.errstate(all="ignore"):
        for i in (range(n) if lower else range(n - 1, -1, -1)):
            known = slice(0, i) if lower else slice(i + 1, n)
            x[..., i, :] -= (a[..., i:i + 1, known] @ x[..., known, :])[..., 0, :]
            if not unit:
                x[..., i, :] /= a[..., i, i, None]
    return x
