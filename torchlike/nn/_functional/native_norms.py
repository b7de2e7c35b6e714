"""torch.native_*: norms and dropout that also return what PyTorch's own derivatives read (means, 1 / standard deviations, the mask)."""
from __future__ import annotations

from ..._arguments import flag, real
from ..._core import dtype as dt
from ..._public import public
from ..._tensor import Tensor
from ...autograd.grad_mode import no_grad
from ...ops.creation import empty, ones_like, zeros_like
from . import group_normalization, normalization
from .dropout import masked


def _type_of_moments(input: Tensor, *others: Tensor | None) -> dt.dtype:
    """PyTorch keeps the moments in the parameters' type where there are parameters."""
    return next((t.dtype for t in others if t is not None), input.dtype)


def _moments(input: Tensor, dims: list[int], eps: float, kind: dt.dtype) -> tuple[Tensor, Tensor]:
    """Mean and 1 / standard deviation over dims, which stay with length 1."""
    wide = input.float() if input.dtype.itemsize == 2 else input
    mean = wide.mean(dims, keepdim=True)
    rstd = (wide.var(dims, correction=0, keepdim=True) + eps).rsqrt()
    return mean.to(kind), rstd.to(kind)


@public(method=False)
def native_layer_norm(input: Tensor, normalized_shape, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, ...]:
    """layer_norm, the means and 1 / the standard deviations."""
    out = normalization.layer_norm(input, normalized_shape, weight, bias, eps)
    with no_grad():
        return (out, *_moments(input, list(range(-len(normalized_shape), 0)), eps, _type_of_moments(input, weight, bias)))


@public(method=False)
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float) -> tuple[Tensor, ...]:
    """group_norm of N samples of C channels with HxW places, the means and 1 / the standard deviations; all with gradients."""
    if input.numel() != N * C * HxW:
        raise RuntimeError("Expected X.numel() == N * C * HxW to be true, but got false.  (Could this error message be improved?  If so, please report an "
                           "enhancement request to PyTorch.)")
    out = group_normalization.group_norm(input, group, weight, bias, eps)
    mean, rstd = _moments(input.reshape(N, group, C * HxW // group), [2], eps, _type_of_moments(input, weight, bias))
    return out, mean.squeeze(2), rstd.squeeze(2)


@public(method=False, out=True)
def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None, training: bool,
                      momentum: float, eps: float) -> tuple[Tensor, ...]:
    """batch_norm; in training also the means and 1 / the standard deviations, else two tensors without elements."""
    kind = _type_of_moments(input, weight, bias, running_mean, running_var)
    out, mean, var = normalization.batch_norm_moments(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if mean is None:
        return out, empty(0, dtype=kind, device=input.device), empty(0, dtype=kind, device=input.device)
    with no_grad():
        return out, mean.detach().to(kind), (var.detach() + eps).rsqrt().to(kind)


@public(method=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """dropout and its mask; train None means yes."""
    real(p, "native_dropout", "p", 2)
    train = True if train is None else flag(train)
    if not input.numel():
        return input, zeros_like(input)
    if not train:
        return input.clone(), ones_like(input, dtype=dt.bool_)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={1 - p:g}")
    out, mask = masked(input, p)
    return out, mask.bool()
