"""call_for_per_sample_grads: a module's forward whose backward finds every example's own gradients."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlike._tensor import Tensor
from torchlike.func import functional_call
from torchlike.nn.modules.module import Module
from torchlike.nn.utils._expanded_weights import ExpandedWeight
from torchlike.utils import _pytree as pytree


def call_for_per_sample_grads(module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True) -> Callable:
    """A function like the module's forward; a backward through it leaves gradients of shape (batch, *parameter) in the parameters' `grad_sample`.

    `batch_size`: by default that of the tensors among the arguments. `loss_reduction`: whether the loss is a "sum" or a "mean" over the examples.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for weight in module.parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError("Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls without clearing gradients. "
                               f"Please clear out the grad_sample parameter of {weight} or post an issue to pytorch/pytorch to prioritize correct behavior")

    @functools.wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size = batch_size or _batch_size((args, kwargs), 0 if batch_first else 1)
        weights = {name: ExpandedWeight(p, size, loss_reduction) if p.requires_grad else p for name, p in module.named_parameters()}
        return functional_call(module, weights, args, kwargs)
    return wrapper


def _batch_size(arguments: Any, dim: int) -> int:
    found = None
    for t in pytree.tree_leaves(arguments):
        if not isinstance(t, Tensor):
            continue
        if found is not None and found != t.shape[dim]:
            raise RuntimeError(f"When computing batch size, found at least one input with batch size {found} and one with batch size {t.shape[dim]}. Please "
                               "specify it explicitly using the batch size kwarg in call_for_per_sample_grads")
        found = t.shape[dim]
    if found is None:
        raise RuntimeError("Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights cannot compute the "
                           "batch size from the inputs. Please specify it explicitly")
    return found
