"""A module as a function of its parameters and buffers, and the parameters of several modules stacked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._public import FUNCTIONS
from .._tensor import Tensor
from ..nn.modules.module import Module
from ..nn.utils.stateless import _functional_call


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with the tensors given, by name, in place of its own; the others stay.

    ValueError for a name in two of the dictionaries; with `strict`, RuntimeError unless the names are all there are.
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, list | tuple):
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in given for name in d]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
            )
        given = {name: tensor for d in given for name, tensor in d.items()}
    elif not isinstance(given, dict):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module] | Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of modules of one kind, each stacked along a new first dimension, for `vmap`."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {
        name: _stacked(name, [dict(m.named_parameters())[name] for m in models]) for name, _ in models[0].named_parameters()
    }
    buffers = {name: _stacked(name, [dict(m.named_buffers())[name] for m in models]) for name, _ in models[0].named_buffers()}
    return parameters, buffers


def _stacked(name: str, tensors: list[Tensor]) -> Tensor:
    """Leaves stack to a leaf, which requires a gradient as they do."""
    if len({t.requires_grad for t in tensors}) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    stacked = FUNCTIONS["stack"]([t.detach() for t in tensors])
    return stacked.requires_grad_(tensors[0].requires_grad)
