"""torch.cond: one of two functions, chosen by a tensor. The value is looked at, and only the chosen function runs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.grad_mode import mode
from .._functorch._trace import innermost
from .._public import FUNCTIONS
from .._tensor import Tensor
from ..autograd.function import Function
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten


class CondAutogradOp(Function):
    """Results of a branch. They depend on all operands, so those that the branch did not use get gradients of zeros."""

    @staticmethod
    def forward(ctx, n, *tensors):
        operands, results = tensors[:n], tensors[n:]
        ctx.save_for_backward(*operands)
        found = tuple(r.view_as(r) for r in results)
        ctx.mark_non_differentiable(*(r for r in found if not _differentiable(r)))
        return found

    @staticmethod
    def backward(ctx, *gradients):
        zeros = [FUNCTIONS["zeros_like"](t) if _differentiable(t) else None for t in ctx.saved_tensors]
        return (None, *zeros, *gradients)


def _differentiable(t: Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def cond(pred: bool | int | float | Tensor, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`, with gradients for the operands. Under vmap over `pred`
    both run, and each example gets its own. RuntimeError for a `pred` that is not one number, or operands that are not tensors."""
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    leaves = tree_leaves(operands)
    if not isinstance(operands, (tuple, list)) or not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError("Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got "
                           f"{operands}.")
    if not isinstance(pred, Tensor):
        return (true_fn if pred else false_fn)(*operands)
    if innermost() is not None:
        return _either(pred, true_fn(*operands), false_fn(*operands))
    result = (true_fn if pred.item() else false_fn)(*operands)
    results, spec = tree_flatten(result)
    inputs = [x for x in leaves if x.requires_grad]
    places = [i for i, r in enumerate(results) if isinstance(r, Tensor)]
    if mode.enabled and inputs and places:
        for i, r in zip(places, CondAutogradOp.apply(len(inputs), *inputs, *(results[i] for i in places))):
            results[i] = r
    return tree_unflatten(results, spec)


def _either(pred: Tensor, yes: Any, no: Any) -> Any:
    """For each example what its branch gave."""
    first, spec = tree_flatten(yes)
    second, other = tree_flatten(no)
    if spec != other:
        raise RuntimeError(f"torch.cond: the branches return different structures, {spec} and {other}")
    pred = pred.reshape(()).to(FUNCTIONS["tensor"](True).dtype)
    return tree_unflatten([FUNCTIONS["where"](pred, a, b) if isinstance(a, Tensor) else a for a, b in zip(first, second)], spec)
