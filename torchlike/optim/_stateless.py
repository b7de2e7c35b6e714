"""An optimizer that for the length of a block has other parameters and another state."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._tensor import Tensor
from .optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state requires"


def _need(holds: bool, said: str) -> None:
    if not holds:
        raise RuntimeError(said)


def _checked(optimizer: Optimizer, given: Any) -> tuple[dict, list[dict]]:
    """The state and the groups of a `state_dict()` that fits the optimizer."""
    _need(bool(optimizer.state), f"{_NAME} initialized optimizer state.")
    _need(isinstance(given, dict), f"{_NAME} a DCP-style optimizer state_dict.")
    state, groups = given.get("state"), given.get("param_groups")
    _need(isinstance(state, dict), f"{_NAME} swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state dicts, got "
                                   f"{type(state).__name__}.")
    _need(not any(isinstance(k, Tensor) for k in state), f"{_NAME} optimizer.state_dict()-style state keyed by packed parameter ids.")
    _need(all(isinstance(x, dict) for k, x in state.items() if isinstance(k, int)), f"{_NAME} per-parameter optimizer state entries to be dictionaries.")
    _need(isinstance(groups, list), f"{_NAME} swapin_optim_state['param_groups'] to be a list of param-group dicts, got {type(groups).__name__}.")
    _need(len(groups) == len(optimizer.param_groups), "swapin_optim_state has a different number of parameter groups than the live optimizer.")
    for i, (own, other) in enumerate(zip(optimizer.param_groups, groups)):
        _need(isinstance(other, dict), f"{_NAME} each optimizer param group to be a dictionary.")
        numbers = other.get("params")
        _need(isinstance(numbers, list) and all(isinstance(n, int) for n in numbers),
              f"{_NAME} optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed parameter ids.")
        _need(len(numbers) == len(own["params"]), f"swapin_optim_state param group {i} has a different number of params than the live optimizer param group.")
        more, less = [k for k in other if k not in own], [k for k in own if k not in other]
        _need(not more and not less, f"{_NAME} optimizer.state_dict()-style param group keys to exactly match the live optimizer group keys for group {i}. Keys "
                                     f"only in swap-in: {more}. Keys only in live: {less}.")
    return state, groups


@contextmanager
def swap_in_optimizer_params_and_state(optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]) -> Iterator[None]:
    """Inside, the optimizer's parameters are these (in its groups' order) and its state and numbers are those of a `state_dict()`; afterwards its own again.

    Tensors of the state that a step writes in place are the given ones. RuntimeError for an optimizer without a state, and for what does not fit it.
    """
    state, groups = _checked(optimizer, swapin_optim_state)
    numbers, tensors = [n for group in groups for n in group["params"]], list(swapin_parameters.values())
    _need(len(numbers) <= len(tensors), f"{_NAME} the explicit parameter state to match optimizer.param_groups ordering.")
    unknown = [k for k in state if k not in numbers]
    _need(not unknown, f"{_NAME} swapin_optim_state['state'] to be keyed only by packed parameter ids from param_groups[*]['params']; got extra keys {unknown!r}.")
    before, kept = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        swapped, left = defaultdict(dict), iter(tensors)
        for own, other in zip(optimizer.param_groups, groups):
            own.update(other, params=[next(left) for _ in other["params"]])
            swapped.update((p, dict(state.get(n, {}))) for p, n in zip(own["params"], other["params"]))
        optimizer.state = swapped
        yield
    finally:
        for group, own in zip(optimizer.param_groups, kept):
            group.clear()
            group.update(own)
        optimizer.state = before
