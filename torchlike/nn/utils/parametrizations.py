"""Ready-made parametrizations: orthogonal, spectral_norm, weight_norm."""
from __future__ import annotations

from typing import Any

from torchlike._tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn.modules.module import Module
from torchlike.nn.utils import parametrize
from torchlike.nn.utils.spectral_norm import default_dim, weight_matrix
from torchlike.nn.utils.weight_norm import _weight_norm, norm_except_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _torch() -> Any:
    import torchlike as torch  # linalg is above nn

    return torch


def _tensor_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def _is_orthogonal(q: Tensor) -> bool:
    torch = _torch()
    n, k = q.size(-2), q.size(-1)
    identity = torch.eye(k, dtype=q.dtype, device=q.device)
    # Rounding of a product of n terms grows with n.
    return bool(torch.allclose(q.mH @ q, identity, atol=10.0 * n * torch.finfo(q.dtype).eps))


def _make_orthogonal(a: Tensor) -> Tensor:
    """The Q of a QR decomposition, its signs chosen so that an orthogonal matrix is left as it is."""
    q, r = _torch().linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A (semi-)orthogonal matrix as an exponential, a Cayley transform or a product of reflections of a free matrix.

    With a trivialization, that matrix describes the change from a fixed orthogonal `base`. Lezcano-Casado, 2019.
    """

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        torch = _torch()
        transposed = X.size(-2) < X.size(-1)
        if transposed:
            X = X.mT
        n, k = X.size(-2), X.size(-1)
        if self.orthogonal_map == "householder":
            reflectors = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (reflectors * reflectors).sum(dim=-2))
            Q = torch.linalg.householder_product(reflectors, tau)
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)  # signs: fixed, not trained
        else:
            X = X.tril()
            if n != k:
                X = torch.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
            A = X - X.mH
            if self.orthogonal_map == "matrix_exp":
                Q = torch.matrix_exp(A)
            else:
                identity = torch.eye(n, dtype=A.dtype, device=A.device)
                Q = torch.linalg.solve(identity - 0.5 * A, identity + 0.5 * A)
            Q = Q[..., :k]
        if getattr(self, "base", None) is not None:
            Q = self.base @ Q
        return Q.mT if transposed else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        torch = _torch()
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. "
                             f"Got a tensor of shape {Q.shape}.")
        tall = Q.mT if Q.size(-2) < Q.size(-1) else Q
        n, k = tall.size(-2), tall.size(-1)
        if hasattr(self, "base"):
            if n != k:
                noise = torch.randn(*tall.shape[:-2], n, n - k, dtype=tall.dtype, device=tall.device)
                full = _make_orthogonal(torch.cat([tall, noise], dim=-1))
            else:
                full = tall.clone() if _is_orthogonal(tall) else _make_orthogonal(tall)
            self.base = full
            start = torch.zeros_like(Q)  # -1 on the diagonal: the identity, for all three maps
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start
        if self.orthogonal_map != "householder":
            raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley "
                                      "parametrizations when use_trivialization=False.")
        A, tau = torch.geqrf(tall)
        A.diagonal(dim1=-2, dim2=-1).sign_()
        A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
        return A.mT if tall is not Q else A


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Module:
    """Keep a parameter (semi-)orthogonal; `orthogonal_map` is "matrix_exp", "cayley" or "householder"."""
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError('orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


class _WeightNorm(Module):
    """weight = g v / ||v||."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a parameter into length (per index of `dim`) and direction. Salimans and Kingma, 2016."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename_old(state_dict: dict, prefix: str, *_: Any) -> None:
        """Accept checkpoints of the hook-based weight_norm."""
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename_old)
    return module


class _SpectralNorm(Module):
    """weight / (its largest singular value), estimated by power iteration."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("Expected n_power_iterations to be positive, but got "
                             f"n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = weight_matrix(weight, self.dim)
            u = matrix.new_empty(matrix.size(0)).normal_(0, 1)
            v = matrix.new_empty(matrix.size(1)).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        with _torch().no_grad():
            for _ in range(n_power_iterations):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = weight_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies: later iterations must not change what this step's backward uses.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Divide a parameter by an estimate of its largest singular value. Miyato et al., 2018."""
    weight = _tensor_of(module, name)
    dim = default_dim(module) if dim is None else dim
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module
