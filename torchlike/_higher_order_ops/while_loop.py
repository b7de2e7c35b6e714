"""torch.while_loop: a function applied to its own results as long as a condition holds. The condition's value is looked at each time."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..utils._pytree import tree_leaves, tree_map


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> Any:
    """`carried_inputs = body_fn(*carried_inputs)` while `cond_fn(*carried_inputs)`; the last of them, with their gradients.
    RuntimeError where the body changes a shape or dtype, or the condition is neither a bool nor one bool in a tensor."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)) or not all(isinstance(x, (Tensor, int, float)) for x in tree_leaves(carried_inputs)):
        raise RuntimeError("Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only consists of tensor or int leaves, "
                           f"but got {carried_inputs}.")
    carried: Any = tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, carried_inputs)  # what is returned is never an argument
    while _holds(cond_fn(*_arguments(carried))):
        after = body_fn(*_arguments(carried))
        _same(after, carried)
        carried = after
    return carried


def _arguments(carried: Any) -> tuple | list:
    return carried if isinstance(carried, (tuple, list)) else (carried,)


def _holds(condition: Any) -> bool:
    if isinstance(condition, Tensor) and condition.dtype.name == "bool" and condition.numel() == 1:
        return condition.item()
    if not isinstance(condition, bool):
        raise RuntimeError("torch.while_loop: Expected cond_fn to return a scalar tensor or a bool but got "
                           f"{condition.shape if isinstance(condition, Tensor) else condition}.")
    return condition


def _same(after: Any, before: Any) -> None:
    new, old = tree_leaves(after), tree_leaves(before)
    if len(new) != len(old):
        raise RuntimeError(f"Expected body_fn_output and carried_inputs to have the same number of leaves, but found {len(new)} and {len(old)}.")
    for i, (a, b) in enumerate(zip(new, old)):
        for what in ("shape", "dtype", "device") if isinstance(a, Tensor) and isinstance(b, Tensor) else ():
            if getattr(a, what) != getattr(b, what):
                raise RuntimeError("Expected body_fn_output and carried_inputs to have same metadata but found:\n"
                                   f"pair[{i}] differ in '{what}: {getattr(a, what)} vs {getattr(b, what)}'")
