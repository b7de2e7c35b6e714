"""A few extreme eigenpairs of a symmetric matrix by locally optimal block conjugate gradients (Knyazev, 2001)."""
from __future__ import annotations

from .._core import dtype as dt
from .._functions import torch
from .._public import public
from .._tensor import Tensor
from ..autograd.function import Function


class Iteration:
    """What a `tracker` sees at each step: the matrices, the block of vectors X, their values E and residuals R."""

    def __init__(self, A, B, X, iK, largest: bool, k: int):
        self.A, self.B, self.X, self.iK, self.largest = A, B, X, iK, largest
        self.ivars = {"istep": 0, "converged_count": 0}
        self.iparams = {"m": A.shape[-1], "n": X.shape[-1], "k": k}
        self.E = self.R = self.P = None

    def _weighted(self, x) -> Tensor:
        return x if self.B is None else self.B @ x

    def _best(self, S) -> None:
        """The best n vectors in the span of S (Rayleigh and Ritz), and P, the direction in which they moved."""
        n = self.X.shape[-1]
        Q = torch.linalg.qr(S)[0]
        if self.B is not None:
            lower = (Q.mT @ self.B @ Q).cholesky()
            Q = torch.linalg.solve_triangular(lower, Q.mT, upper=False).mT
        E, Z = torch.linalg.eigh(Q.mT @ self.A @ Q)
        E, Z = (E.flip(-1)[:n], Z.flip(-1)[:, :n]) if self.largest else (E[:n], Z[:, :n])
        new = Q @ Z
        self.P = new - self.X @ (self.X.mT @ self._weighted(new))
        self.X, self.E = new, E
        self.R = self.A @ self.X - self._weighted(self.X) * E

    def run(self, niter: int, tol: float, tracker) -> None:
        k, norm_A = self.iparams["k"], torch.linalg.vector_norm(self.A)
        norm_B = 1.0 if self.B is None else torch.linalg.vector_norm(self.B)
        self._best(self.X)
        self.P = None
        for step in range(niter + 1):
            error = torch.linalg.vector_norm(self.R, dim=0) / (torch.linalg.vector_norm(self.X, dim=0) * (norm_A + self.E.abs() * norm_B))
            self.ivars = {"istep": step, "converged_count": int((error < tol).int().cumprod(0).sum())}
            if tracker is not None:
                tracker(self)
            if self.ivars["converged_count"] >= k or step == niter:
                return
            W = self.R if self.iK is None else self.iK @ self.R
            self._best(torch.cat([self.X, W] if self.P is None else [self.X, W, self.P], -1))


class _Eigenpairs(Function):
    """The pairs with their derivatives in A: v_i moves by (w_i - A)^+ dA v_i, w_i by v_i^T dA v_i."""

    @staticmethod
    def forward(ctx, A, find):
        E, X = find(A.detach())
        ctx.save_for_backward(A, E, X)
        return E, X

    @staticmethod
    def backward(ctx, gE, gX):
        A, E, X = ctx.saved_tensors
        one = A.new_zeros(*A.shape[-2:]).fill_diagonal_(1)
        out = (X * gE.unsqueeze(-2)) @ X.mT
        for i in range(E.shape[-1]):
            v = X[..., i:i + 1]
            off = one - v @ v.mT
            w = E[..., i, None, None]
            out = out + off @ torch.linalg.solve(w * one - off @ A @ off, off @ gX[..., i:i + 1]) @ v.mT
        return (out + out.mT) / 2, None


@public(method=False)
def lobpcg(A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None, iK: Tensor | None = None,
           niter: int | None = None, tol: float | None = None, largest: bool | None = None, method: str | None = None, tracker=None,
           ortho_iparams=None, ortho_fparams=None, ortho_bparams=None) -> tuple[Tensor, ...]:
    """(k values, vectors) of A v = w B v, the largest first, or the smallest with largest=False. X: where to start (n columns, random
    by default); iK: a preconditioner; tol bounds relative residuals. Both of torch's methods are this one, the ortho_* are not needed."""
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    if tol is None:
        tol = {dt.float32: 1.2e-07, dt.float64: 2.23e-16}[A.dtype] ** 0.5
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
                         f"eigenpairs (={n})")

    def one(a, b, x):
        it = Iteration(a, b, torch.randn((m, n), dtype=a.dtype, device=a.device) if x is None else x, iK, largest is not False, k)
        it.run(1000 if niter is None else niter, tol, tracker)
        return it.E[:k], it.X[:, :k]

    def find(a):
        if a.ndim == 2:
            return one(a, B, X)
        parts = [None if t is None else t.reshape(-1, *t.shape[-2:]) for t in (a, B, X)]
        pairs = [one(*(None if p is None else p[i] for p in parts)) for i in range(parts[0].shape[0])]
        return tuple(torch.stack([pair[j] for pair in pairs]).reshape(*a.shape[:-2], *pairs[0][j].shape) for j in (0, 1))
    if not A.requires_grad:
        return find(A)
    if B is not None:
        raise NotImplementedError("lobpcg.backward: the derivative with respect to B is not implemented: use it with B=None")
    return _Eigenpairs.apply((A + A.mT) / 2, find)
