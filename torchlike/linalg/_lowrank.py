"""Randomized decompositions of nearly low-rank matrices (Halko, Martinsson and Tropp, 2009)."""
from __future__ import annotations

from .._core import dtype as dt
from .._public import public
from .._tensor import Tensor
from ..ops.linalg_factor import linalg_qr
from ..ops.linalg_spectral import linalg_svd
from ..ops.random import randn


def _basis(A, q: int, niter: int, M) -> Tensor:
    """Orthonormal columns that nearly span the range of A - M."""
    def times(a, m, x):
        return linalg_qr(a @ x if m is None else a @ x - m @ x)[0]
    Q = times(A, M, randn((A.shape[-1], q), dtype=A.dtype, device=A.device))
    for _ in range(niter):
        Q = times(A, M, times(A.mH, None if M is None else M.mH, Q))
    return Q


@public(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple:
    """(U, S, V) with A - M nearly U diag(S) V^H, S of q values; niter rounds of subspace iteration."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    M = None if M is None else M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = A.mH, None if M is None else M.mH
    Q = _basis(A, q, niter, M)
    B = Q.mH @ A if M is None else Q.mH @ A - Q.mH @ M
    U, S, Vh = linalg_svd(B, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


@public(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple:
    """svd_lowrank of A, its columns' means taken off with `center`: V's columns are the principal directions."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if A.dtype.category < dt.FLOAT:
        A = A.to(dt.float32)
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
