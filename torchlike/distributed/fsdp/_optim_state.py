"""An optimizer's state of flat pieces, by the names of the parameters in them, and back."""
from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..._tensor import Tensor, as_tensor_value
from ...nn.modules.module import Module
from ...optim import Optimizer
from ..collectives import read
from ..objects import all_gather_object, broadcast_object_list
from ..process_group import get_rank
from ._flat_param import FlatHandle
from .api import OptimStateKeyType, StateDictType


def _units(model: Module) -> list[FlatHandle]:
    return [m._handle for m in model.modules() if getattr(m, "_handle", None) is not None]


def _clean(name: str) -> str:
    return name.replace("_fsdp_wrapped_module.", "")


def _names(model: Module) -> dict[int, str]:
    """Names of parameters that no unit has, by identity."""
    return {id(p): _clean(n) for n, p in model.named_parameters()}


def named_state(model: Module, optimizer: Optimizer, given: dict[str, Any] | None, kind: StateDictType, on_host: bool, rank0_only: bool,
                spread: Any) -> dict[str, Any]:
    """{"state": by name, "param_groups": with names}: whole tensors, or what `spread(handle, tensor)` makes of them."""
    saved = optimizer.state_dict() if given is None else given
    numbered = [p for group in optimizer.param_groups for p in group["params"]]
    number = {id(p): i for i, p in enumerate(numbered)}
    names, of_number, state = _names(model), {}, {}
    for handle in _units(model):
        numbers = [number.get(id(leaf)) for leaf in handle.leaves]
        for i, n in enumerate(numbers):
            if n is not None:
                of_number[n] = [handle.members[i].name] if handle.own_names else [m.name for m in handle.members]
        _gather_states(handle, [saved["state"].get(n, {}) for n in numbers], state, kind, spread)
    for p, n in ((p, number[id(p)]) for p in numbered):
        if n not in of_number:
            of_number[n] = [names[id(p)]]
            if n in saved["state"]:
                state[names[id(p)]] = dict(saved["state"][n])
    groups = [{**group, "params": [name for n in group["params"] for name in of_number[n]]} for group in saved["param_groups"]]
    if rank0_only and get_rank() != 0:
        return {}
    if on_host:
        state = {name: {k: x.cpu() if isinstance(x, Tensor) else x for k, x in entries.items()} for name, entries in state.items()}
    return {"state": state, "param_groups": groups}


def _gather_states(handle: FlatHandle, states: list[dict[str, Any]], found: dict[str, Any], kind: StateDictType, spread: Any) -> None:
    """Add the states of a unit's parameters by name. Every rank asks for the same entries."""
    for key, like in _entries(handle, states).items():
        if isinstance(like, Tensor) and like.dim():
            parts = [read(s[key]) if s else np.zeros(leaf.numel(), like.dtype.np) for s, leaf in zip(states, handle.leaves)]
            for m, array in zip(handle.members, handle.gathered(parts)):
                whole = as_tensor_value(array.copy(), handle.leaves[0].device)
                found.setdefault(m.name, {})[key] = spread(handle, whole) if kind is StateDictType.SHARDED_STATE_DICT else whole
        else:
            for m in handle.members:
                found.setdefault(m.name, {})[key] = copy.deepcopy(like)


def _entries(handle: FlatHandle, states: list[dict[str, Any]]) -> dict[str, Any]:
    """What an optimizer keeps for a unit, by an example: that of another rank where this one's pieces are empty, which no step has reached."""
    own = next((s for s in states if s), {})
    if handle.shards is None:
        return own
    everywhere = [None] * handle.size
    all_gather_object(everywhere, {k: x[:0].cpu() if isinstance(x, Tensor) and x.dim() else x for k, x in own.items()}, handle.shards)
    return next((entries for entries in everywhere if entries), {})


def numbered_state(model: Module, optimizer: Optimizer, named: dict[str, Any]) -> dict[str, Any]:
    """What optimizer.load_state_dict takes, of what `named_state` gave."""
    numbered = [p for group in optimizer.param_groups for p in group["params"]]
    number, names = {id(p): i for i, p in enumerate(numbered)}, _names(model)
    state: dict[int, Any] = {}
    handled, labels = set(), {}
    for handle in _units(model):
        mine = [number.get(id(leaf)) for leaf in handle.leaves]
        handled.update(n for n in mine if n is not None)
        for i, n in enumerate(mine):
            labels[n] = handle.members[i].name if handle.own_names else handle.members[0].name
        of_members = [named["state"].get(m.name, {}) for m in handle.members]
        entries = next((s for s in of_members if s), {})
        for key, like in entries.items():
            if isinstance(like, Tensor) and like.dim():
                arrays = [read(_whole(s[key])) if s else None for s in of_members]
                values: Iterable[Any] = [as_tensor_value(part.copy(), leaf.device) for part, leaf in zip(handle.cut(arrays), handle.leaves)]
            else:
                values = [copy.deepcopy(like) for _ in handle.leaves]
            for n, leaf, value in zip(mine, handle.leaves, values):
                if n is not None and leaf.requires_grad and (leaf.numel() or handle.shards is None):
                    state.setdefault(n, {})[key] = value
    for n, p in enumerate(numbered):
        if n not in handled:
            labels[n] = names[id(p)]
            if names[id(p)] in named["state"]:
                state[n] = named["state"][names[id(p)]]
    groups, begin = [], 0
    for group in optimizer.param_groups:
        own = list(range(begin, begin + len(group["params"])))
        begin += len(own)
        saved = next((g for g in named["param_groups"] if {labels[n] for n in own} & set(g["params"])), {})
        groups.append({**saved, "params": own})
    return {"state": state, "param_groups": groups}


def _whole(t: Tensor) -> Tensor:
    return t.full_tensor() if hasattr(t, "full_tensor") else t


def from_rank0(state: dict[str, Any] | None, group: Any) -> dict[str, Any]:
    """Rank 0's state on every rank."""
    held = [state]
    broadcast_object_list(held, group=group, group_src=0)
    return held[0]


def rekeyed(state: dict[str, Any], kind: OptimStateKeyType, model: Module) -> dict[str, Any]:
    """The state with parameters by name or by number, for a model that is not wrapped."""
    ordered = [_clean(n) for n, _ in model.named_parameters()]
    change = dict(enumerate(ordered)) if kind is OptimStateKeyType.PARAM_NAME else {n: i for i, n in enumerate(ordered)}
    groups = [{**g, "params": sorted(change[k] for k in g["params"])} for g in state["param_groups"]]
    return {"state": {change[k]: v for k, v in state["state"].items()}, "param_groups": groups}
