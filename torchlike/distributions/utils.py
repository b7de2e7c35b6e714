"""What distributions share: broadcasting of parameters, lazy attributes, probabilities and logits."""
from __future__ import annotations

import math
from numbers import Number

from .. import ops as _ops  # noqa: F401  (publishes FUNCTIONS)
from .._core import dtype as dt
from .._functions import torch as F
from .._tensor import Tensor
from ..autograd.grad_mode import enable_grad
from ..nn.functional import logsigmoid
from ..ops.queries import finfo


def broadcast_all(*values) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the tensors' dtype, or the default one."""
    if not all(isinstance(v, (Tensor, Number)) for v in values):
        if all(isinstance(v, Number) or hasattr(type(v), "__torch_function__") for v in values):
            from ..overrides import dispatching_form
            return dispatching_form(F["broadcast_tensors"])(*[F["tensor"](v, dtype=dt.get_default_dtype()) if isinstance(v, Number) else v for v in values])
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__.")
    first = next((v for v in values if isinstance(v, Tensor)), None)
    made = [v if isinstance(v, Tensor) else F["tensor"](v, dtype=dt.get_default_dtype() if first is None else first.dtype,
                                                         device=None if first is None else first.device) for v in values]
    if all(t.shape == made[0].shape for t in made):  # values at hand stay so
        return tuple(made)
    return tuple(F["broadcast_tensors"](*made))


def sum_rightmost(value, dim: int):
    """value summed over its last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1 by the type's epsilon."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def softplus(x: Tensor) -> Tensor:
    """log(1 + e^x), without overflow, and with slope 1/2 at 0."""
    return -logsigmoid(-x)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds of binary probabilities, else log-probabilities."""
    p = clamp_probs(probs)
    return p.log() - (-p).log1p() if is_binary else p.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse: sigmoid for binary, else softmax over the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def _lower(size: int, diag: int, device) -> Tensor:
    places = F["arange"](size, device=device)
    return places < places.unsqueeze(1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal, row by row, as the last dimension. ValueError for a diagonal outside the matrix."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower(mat.shape[-2], diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse: a square matrix with zeros above that diagonal. ValueError for a length that no such matrix has."""
    length = vec.shape[-1]
    n = round((math.sqrt((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) - (1 + 2 * diag)) / 2)
    inside = (n + diag) * (n + diag + 1) // 2 if diag < 0 else n * (n + 1) // 2 + diag * n - diag * (diag + 1) // 2
    if inside != length:
        raise ValueError(f"The size of last dimension is {length} which cannot be expressed as the lower triangular part of a square D x D matrix.")
    mat = vec.new_zeros((*vec.shape[:-1], n, n))
    mat[..., _lower(n, diag, vec.device)] = vec
    return mat


class lazy_property:
    """A property computed at its first use (with gradients), then an attribute."""

    def __init__(self, wrapped) -> None:
        self.wrapped, self.__doc__, self.__name__ = wrapped, wrapped.__doc__, wrapped.__name__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def standard_normal(shape, dtype, device) -> Tensor:
    """Standard normal numbers."""
    return F["randn"](shape, dtype=dtype, device=device)


def scalar_parameters(*values) -> bool:
    """Whether all parameters are plain numbers."""
    return all(isinstance(v, Number) for v in values)


_sum_rightmost, _standard_normal = sum_rightmost, standard_normal  # as libraries know them
