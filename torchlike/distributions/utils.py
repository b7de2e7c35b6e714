"""What distributions share: broadcasting of parameters, lazy attributes, probabilities and logits."""
from __future__ import annotations

from numbers import Number

from .. import ops as _ops  # noqa: F401  (publishes FUNCTIONS)
from .._core import dtype as dt
from .._public import FUNCTIONS as F
from .._tensor import Tensor
from ..autograd.grad_mode import enable_grad
from ..ops.queries import finfo


def broadcast_all(*values) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape; numbers take the tensors' dtype, or the default one."""
    if not all(isinstance(v, (Tensor, Number)) for v in values):
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


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds of binary probabilities, else log-probabilities."""
    p = clamp_probs(probs)
    return p.log() - (-p).log1p() if is_binary else p.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse: sigmoid for binary, else softmax over the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


class lazy_property:
    """A property computed at its first use (with gradients), then an attribute."""

    def __init__(self, wrapped):
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
    return F["normal"](F["zeros"](shape, dtype=dtype, device=device), 1.0)


def scalar_parameters(*values) -> bool:
    """Whether all parameters are plain numbers."""
    return all(isinstance(v, Number) for v in values)


_sum_rightmost, _standard_normal = sum_rightmost, standard_normal  # as libraries know them
