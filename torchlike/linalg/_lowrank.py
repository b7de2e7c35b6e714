"""Randomized decompositions of nearly low-rank matrices (Halko, Martinsson and Tropp, 2009)."""
from __future__ import annotations

from .._core import dtype as dt
from .._functions import torch
from .._public import public
from .._tensor import Tensor


def _adjoint(x):
    """The conjugate transpose; of a pair, which stands for its product, too."""
    if isinstance(x, tuple):
        return x[1].mH, x[0].mH
    if x.is_sparse:
        return (x.conj() if x.dtype.is_complex else x).transpose(-2, -1)
    return x.mH


def _times(a, m, x: Tensor) -> Tensor:
    """(a - m) @ x without a - m, which would be dense where a is sparse."""
    y = a @ x
    if m is None:
        return y
    return y - (m[0] @ (m[1] @ x) if isinstance(m, tuple) else m @ x)


def _basis(A, q: int, niter: int, M) -> Tensor:
    """Orthonormal columns that nearly span the range of A - M."""
    Q = torch.linalg.qr(_times(A, M, torch.randn((A.shape[-1], q), dtype=A.dtype, device=A.device)))[0]
    for _ in range(niter):
        Q = torch.linalg.qr(_times(_adjoint(A), None if M is None else _adjoint(M), Q))[0]
        Q = torch.linalg.qr(_times(A, M, Q))[0]
    return Q


@public(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, ...]:
    """(U, S, V) with A - M nearly U diag(S) V^H, S of q values; niter rounds of subspace iteration. A may be sparse."""
    return _svd(A, 6 if q is None else q, 2 if niter is None else niter, None if M is None else M.broadcast_to(A.shape))


def _svd(A: Tensor, q: int, niter: int, M) -> tuple:
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = _adjoint(A), None if M is None else _adjoint(M)
    Q = _basis(A, q, niter, M)
    B = _times(_adjoint(A), None if M is None else _adjoint(M), Q).mH
    U, S, Vh = torch.linalg.svd(B, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


@public(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, ...]:
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
    if not center:
        return _svd(A, q, niter, None)
    if not A.is_sparse:
        return _svd(A - A.mean(-2, keepdim=True), q, niter, None)
    if A.ndim != 2:
        raise ValueError("pca_lowrank input is expected to be 2-dimensional tensor")
    means = A.sum((0,)).to_dense() / m
    return _svd(A, q, niter, (means.new_ones(m, 1), means.unsqueeze(0)))
