"""Clipping gradients by norm or by value."""
from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Union

from torchlike._core import dtype as dt
from torchlike._core.registry import Op
from torchlike._tensor import Tensor, apply, is_told_to_nobody
from torchlike._writing import write_into
from torchlike.autograd.grad_mode import no_grad
from torchlike.ops.norms import norm_of

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


# Of many gradients together: a program of changing shapes grows by one operation, not by two for each parameter.


def _norm_of_norms(xp, *given):
    *arrays, p = given
    norms = [norm_of(xp, x, p, tuple(range(x.ndim)), False) for x in arrays]
    return norm_of(xp, xp.stack(norms), p, (0,), False)


_TOTAL = Op("total_norm", _norm_of_norms, shape=lambda a, *rest: ((), a.dtype), vjp=False)
_SCALED = Op("scaled_gradients", lambda xp, scale, *arrays: [x * scale for x in arrays], shape=lambda scale, *avals: [(a.shape, a.dtype) for a in avals],
             vjp=False)


def _alike(tensors: list[Tensor]) -> bool:
    """Whether they are several plain tensors of float32 or float64 and one device, with elements and memory of their own."""
    if len(tensors) < 2 or not is_told_to_nobody():
        return False
    first, memory = tensors[0], set()
    for t in tensors:
        if (not isinstance(t, Tensor) or not t._plain or not t.ndim or not t.numel() or t.dtype is not first.dtype or t.device != first.device):
            return False
        memory.add(id(t if t._storage is None else t._storage))
    return first.dtype in (dt.float32, dt.float64) and len(memory) == len(tensors)


def _torch() -> Any:
    import torchlike as torch  # factories are above nn

    return torch


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


_tensor_or_tensors = Union[Tensor, Iterable[Tensor]]  # noqa: UP007  libraries annotate their own clipping with it


def _no_grad(func: Callable) -> Callable:
    """The function, run without recording a graph: a decorator that libraries' own clipping takes from here."""
    return no_grad()(func)


@no_grad()
def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:
    """The norm of all tensors taken as one vector. Raises RuntimeError for nan and inf with `error_if_nonfinite`."""
    torch = _torch()
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    if _alike(tensors):
        total_norm = apply(_TOTAL, tensors, (norm_type,))
    else:
        device = tensors[0].device
        vector_norm = torch.linalg.vector_norm  # looked up here, since DTensors answer it themselves
        norms = [vector_norm(t, norm_type).to(device) for t in tensors]
        total_norm = vector_norm(torch.stack(norms), norm_type)
    if error_if_nonfinite and bool(torch.logical_or(total_norm.isnan(), total_norm.isinf())):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
                           "cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
                           "anyway, set `error_if_nonfinite=False`")
    return total_norm


def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor,
                          foreach: bool | None = None) -> None:
    """Scale the gradients by max_norm / total_norm where that is below 1."""
    with no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        grads = _grads(parameters)
        if _alike(grads) and scale._plain and not scale.ndim and scale.dtype is grads[0].dtype and scale.device == grads[0].device:
            for grad, made in zip(grads, apply(_SCALED, (scale, *grads)), strict=True):
                write_into(grad, made)
        else:
            for grad in grads:
                grad.mul_(scale.to(grad.device))


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Scale all gradients together so that their norm is at most `max_norm`; the norm before."""
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    else:
        is_generator = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if is_generator and not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total_norm = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The deprecated name of `clip_grad_norm_`."""
    warnings.warn("`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
                  FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every gradient to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with no_grad():
        for grad in _grads(parameters):
            grad.clamp_(min=-clip_value, max=clip_value)
