"""`register_sharding`: rules that a program gives for operators on DTensors."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..._ops import OpOverload
from ...utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from ._call import Call
from ._dtensor import DTensor, marked, operand
from ._layout import Placements
from .placement_types import Placement

# by the public function's name, or `namespace::name` of other operators than aten's; `_dispatch` asks them first
OWN_RULES: dict[str, Callable[[Call], Any]] = DTensor._operators


def register_sharding(op: OpOverload | Sequence[OpOverload]) -> Callable:
    """A decorator: the function takes an operator's arguments and returns pairs of lists, how its results may lie along one dimension of a mesh and how its
    arguments lie then (None for those that are no tensors). A call takes, for each dimension of its mesh, the pair for which least is sent. A rule for one of
    torch.ops.aten answers calls of the public function of its name, too."""
    def registered(choices: Callable) -> Callable:
        for overload in [op] if isinstance(op, OpOverload) else op:
            name = overload._opname if overload.namespace == "aten" else f"{overload.namespace}::{overload._opname}"
            OWN_RULES[name] = lambda call: _by_choices(call, choices)
        return choices
    return registered


def _sent(lies: Placement, wanted: Placement, elements: int) -> int:
    """How much is sent for a tensor to lie as wanted: nothing where it does, less for cutting a whole one than for joining pieces."""
    return 0 if lies == wanted else 1 if lies.is_replicate() else 1 + elements


def _in_order(function: Callable, args: tuple, kwargs: dict) -> list:
    """The arguments in the order of the function's parameters."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    return [*bound.args, *bound.kwargs.values()]


def _by_choices(call: Call, choices: Callable) -> Any:
    pairs = [(list(out), list(given)) for out, given in choices(*call.args, **call.kwargs)]
    tensors = [(k, x) for k, x in enumerate(_in_order(choices, call.args, call.kwargs)) if isinstance(x, DTensor)]

    def sent(d: int, given: list) -> int:
        return sum(_sent(x._placements[d], given[k], x.numel()) for k, x in tensors)
    chosen = [min(pairs, key=lambda pair, d=d: sent(d, pair[1])) for d in range(call.mesh.ndim)]
    wanted: dict[int, Placements] = {id(x): tuple(given[k] for _, given in chosen) for k, x in tensors}
    results: list[Placements] = [tuple(out[k] for out, _ in chosen) for k in range(len(chosen[0][0]))]
    split = [any(not lies[d].is_replicate() for lies in (*results, *wanted.values())) for d in range(call.mesh.ndim)]
    shapes = [x.shape for x in tree_leaves(call.shapes())]
    made, form = tree_flatten(call.on(lambda t: operand(t, wanted[id(t)], split)))
    return tree_unflatten([marked(t, call.mesh, lies, shape) for t, lies, shape in zip(made, results, shapes)], form)
