"""States of models and optimizers under the model's own names: without what DistributedDataParallel and torch.compile put before them, and with
parameters by name in an optimizer's state."""
from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._compile import OptimizedModule
from ..._functions import torch
from ..._tensor import Tensor
from ...autograd.grad_mode import no_grad
from ...nn.modules.module import Module
from ...nn.parallel import DistributedDataParallel
from ...optim import Optimizer
from ..collectives import broadcast
from ..objects import broadcast_object_list
from ..process_group import get_rank, is_initialized
from ..tensor import DTensor, distribute_tensor
from ._nesting import mapped

__all__ = ["StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict", "set_optimizer_state_dict",
           "set_state_dict"]


@dataclass
class StateDictOptions:
    """full_state_dict: whole tensors in the place of DTensors; cpu_offload: tensors on the CPU; ignore_frozen_params: without parameters that need no
    gradient; strict: every name must be there; flatten_optimizer_state_dict: an optimizer's entries by dotted name."""
    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _options(given: StateDictOptions | None) -> StateDictOptions:
    options = given or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _own_name(model: Module, name: str) -> str:
    """A name of the model's state without the wrappers on its way."""
    here, parts = model, []
    for part in name.split("."):
        if not (isinstance(here, DistributedDataParallel) and part == "module" or isinstance(here, OptimizedModule) and part == "_orig_mod"):
            parts.append(part)
        here = getattr(here, part, None)
    return ".".join(parts)


def _placed(state: Any, options: StateDictOptions) -> Any:
    """The state as the options want it: whole on the CPU, it is that of rank 0 alone."""
    def place(t: Tensor) -> Tensor:
        if options.full_state_dict and hasattr(t, "full_tensor"):
            t = t.full_tensor()
        return t.detach().cpu() if options.cpu_offload else t
    made = mapped(place, state) if options.full_state_dict or options.cpu_offload else state
    return {} if options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() else made


def _spread(given: dict[str, Any], local: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Whole tensors as the model has them, from rank 0 or each rank's own; both states are flat."""
    if options.broadcast_from_rank0:
        held = [{name: None if isinstance(x, Tensor) else x for name, x in given.items()}]
        broadcast_object_list(held)
        given = {name: _from_rank0(given.get(name), local.get(name)) if x is None else x for name, x in held[0].items()}
    return {name: distribute_tensor(x.detach(), local[name].device_mesh, local[name].placements, src_data_rank=None)
            if isinstance(x, Tensor) and isinstance(local.get(name), DTensor) and not isinstance(x, DTensor) else x for name, x in given.items()}


def _from_rank0(mine: Tensor | None, like: Tensor) -> Tensor:
    made = mine.detach().to(like.device).contiguous() if get_rank() == 0 else torch.empty(tuple(like.shape), dtype=like.dtype, device=like.device)
    broadcast(made, 0)
    return made


def _tuple_of(optimizers: Optimizer | Iterable[Optimizer]) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


# -- models --------------------------------------------------------------------------------------------------------------


def get_model_state_dict(model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None) -> dict[str, Any]:
    """model.state_dict() under the model's own names."""
    options = _options(options)
    with no_grad():
        state = {_own_name(model, name): x for name, x in model.state_dict().items()}
        if submodules:
            prefixes = [_own_name(model, name) + "." for name, m in model.named_modules() if m in submodules]
            state = {name if options.keep_submodule_prefixes else name.removeprefix(prefix): x
                     for name, x in state.items() for prefix in prefixes if name.startswith(prefix)}
        if options.ignore_frozen_params:
            for name, p in model.named_parameters():
                if not p.requires_grad:
                    state.pop(_own_name(model, name))
        return _placed(state, options)


def set_model_state_dict(model: Module, model_state_dict: dict[Any, Any], *, options: StateDictOptions | None = None) -> Any:
    """Load what `get_model_state_dict` gave; what load_state_dict returns. A dict by submodule is one of the names below each."""
    options = _options(options)
    if model_state_dict and isinstance(next(iter(model_state_dict)), Module):
        names = {m: name for name, m in model.named_modules()}
        model_state_dict = {f"{_own_name(model, names[m])}.{name}": x for m, state in model_state_dict.items() for name, x in state.items()}
    if not model_state_dict and options.strict and not options.ignore_frozen_params and not (
            (options.cpu_offload or options.broadcast_from_rank0) and options.full_state_dict):
        raise RuntimeError("The option indicates that model state_dict is required to save or load, but model state_dict is empty.")
    given = dict(model_state_dict)
    if options.full_state_dict:
        given = _spread(given, {_own_name(model, name): x for name, x in model.state_dict().items()}, options)
    for name in model.state_dict():
        own = _own_name(model, name)
        if own != name:
            if own in given:
                given[name] = given.pop(own)
            elif options.strict:
                raise RuntimeError(f"Missing key: {own}.")
    return model.load_state_dict(given, strict=options.strict)


# -- optimizers ----------------------------------------------------------------------------------------------------------


def _init_optim_state(optimizer: Optimizer) -> None:
    """Give an optimizer that has made no step yet the state that it will have: by a step of gradients 0 and rate 0."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if optimizer.state or any(p.grad is not None for p in parameters):
        return
    for p in parameters:
        if p.requires_grad:
            p.grad = torch.zeros_like(p)
    rates = [(group, group["lr"]) for group in optimizer.param_groups if "lr" in group]
    for group, rate in rates:
        group["lr"] = torch.tensor(0.0) if isinstance(rate, Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in rates:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _names(model: Module) -> dict[int, str]:
    """The names of the parameters, by identity."""
    return {id(p): _own_name(model, name) for name, p in model.named_parameters()}


def _named_state(model: Module, optimizer: Optimizer) -> dict[str, Any]:
    """optimizer.state_dict() with names instead of numbers."""
    names, state = _names(model), optimizer.state_dict()
    by_number = [names.get(id(p)) for p in itertools.chain.from_iterable(group["params"] for group in optimizer.param_groups)]
    if None in by_number:
        raise KeyError(by_number.index(None))
    return {"state": {by_number[k]: x for k, x in state["state"].items()},
            "param_groups": [{**group, "params": [by_number[k] for k in group["params"]]} for group in state["param_groups"]]}


def _flat(state: dict[str, Any]) -> dict[str, Any]:
    """An optimizer's state by names `state.<parameter>.<entry>` and `param_groups.<parameter>.<setting>`."""
    made: dict[str, Any] = {}

    def visit(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, x in value.items():
                visit(f"{prefix}.{key}", x)
        elif isinstance(value, (Tensor, int, float)):
            made[prefix] = value
        else:
            raise NotImplementedError(f"Flattening optimizer state_dict only supports tensor, int, float, dict states now. Type is {type(value)}.")
    for name, entries in state["state"].items():
        visit(f"state.{name}", entries)
    for group in state["param_groups"]:
        for name in group["params"]:
            made.update({f"param_groups.{name}.{key}": x for key, x in group.items() if key != "params"})
    return made


def get_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None,
                             options: StateDictOptions | None = None) -> dict[str, Any]:
    """The optimizers' states together, parameters by name."""
    options, made = _options(options), {"state": {}, "param_groups": []}
    with no_grad():
        for optimizer in _tuple_of(optimizers):
            _init_optim_state(optimizer)
            state = _named_state(model, optimizer)
            made["state"].update(state["state"])
            made["param_groups"] += state["param_groups"]
        return _placed(_flat(made) if options.flatten_optimizer_state_dict else made, options)


def _unflat(model: Module, optimizer: Optimizer, flat: dict[str, Any]) -> dict[str, Any]:
    """The state that `_flat` gave, as far as it is this optimizer's."""
    names, made = _names(model), {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        own = [names[id(p)] for p in group["params"]]
        for p, name in zip(group["params"], own):
            if p.requires_grad:
                entries = made["state"][name] = {}
                for entry in optimizer.state[p]:
                    prefix = f"state.{name}.{entry}"
                    entries[entry] = flat[prefix] if prefix in flat else _below(prefix + ".", flat)
        settings: dict[str, Any] = {"params": own}
        for key in group:
            if key != "params":
                values = [flat[f"param_groups.{name}.{key}"] for name in own]
                if any(v != values[0] for v in values):
                    raise RuntimeError(f"All the parameters in the same parameter group should have the same saved param_group value. But {own[0]}.{key} is "
                                       f"{values[0]} while other(s) is {next(v for v in values if v != values[0])}.")
                settings[key] = values[0]
        made["param_groups"].append(settings)
    return made


def _below(prefix: str, flat: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, x in flat.items():
        if name.startswith(prefix):
            *way, last = name.removeprefix(prefix).split(".")
            here = made
            for part in way:
                here = here.setdefault(part, {})
            here[last] = x
    return made


def _numbered(model: Module, optimizer: Optimizer, state: dict[str, Any], strict: bool) -> dict[str, Any]:
    """What optimizer.load_state_dict takes, of a state by names."""
    if all(isinstance(key, int) for key in state["state"]):
        return state
    names, made, number = _names(model), {"state": {}, "param_groups": []}, 0
    for group in optimizer.param_groups:
        own = [names[id(p)] for p in group["params"]]
        saved = next((g for g in state["param_groups"] if set(own) & set(g["params"]) or not own and not g["params"]), {})
        made["param_groups"].append({**saved, "params": list(range(number, number + len(own)))})
        for k, (p, name) in enumerate(zip(group["params"], own), number):
            if name in state["state"]:
                made["state"][k] = state["state"][name]
            elif p.requires_grad and strict:
                raise RuntimeError(f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires gradients but has no saved optimizer "
                                   "state. To load anyway, use StateDictOptions(strict=False).")
        number += len(own)
    return made


def set_optimizer_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: dict[str, Any], *,
                             options: StateDictOptions | None = None) -> None:
    """Load what `get_optimizer_state_dict` gave, each optimizer its part."""
    options = _options(options)
    if not optim_state_dict and not ((options.cpu_offload or options.broadcast_from_rank0) and options.full_state_dict):
        raise RuntimeError(f"The option indicates that model state_dict is required to save, or load but optim state_dict is empty. {optim_state_dict}")
    for optimizer in _tuple_of(optimizers):
        _init_optim_state(optimizer)
        if options.full_state_dict:
            local = _flat(_named_state(model, optimizer))
            flat = optim_state_dict if "state" not in optim_state_dict and optim_state_dict else _flat(optim_state_dict) if optim_state_dict else {}
            optim_state_dict = _spread(flat, local, options)
        state = optim_state_dict if "state" in optim_state_dict else _unflat(model, optimizer, optim_state_dict)
        optimizer.load_state_dict(_numbered(model, optimizer, state, options.strict))


# -- both ----------------------------------------------------------------------------------------------------------------


def get_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: set[Module] | None = None,
                   options: StateDictOptions | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The model's state and the optimizers'."""
    optimizers = _tuple_of(optimizers)
    state = get_model_state_dict(model, submodules=submodules, options=options)
    return state, get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options) if optimizers else {}


def set_state_dict(model: Module, optimizers: Optimizer | Iterable[Optimizer], *, model_state_dict: dict[str, Any], optim_state_dict: dict[str, Any],
                   options: StateDictOptions | None = None) -> Any:
    """Load both; what load_state_dict of the model returns."""
    optimizers = _tuple_of(optimizers)
    if optimizers:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
