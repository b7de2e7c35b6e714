"""A sparsifier: which tensors of a model have masks, and what is known of each."""
from __future__ import annotations

import abc
import copy
from collections import defaultdict
from typing import Any

from ...._functions import torch
from ....nn import Linear, Module
from ....nn.utils import parametrize
from ....nn.utils.parametrize import type_before_parametrizations
from .utils import FakeSparsity, get_arg_info_from_tensor_fqn, module_contains_param, module_to_fqn, swap_module

__all__ = ["BaseSparsifier"]

SUPPORTED_MODULES = {Linear}
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]


class BaseSparsifier(abc.ABC):
    """`prepare` puts masks on a model's tensors, `step` chooses them again by `update_mask`, which a subclass has, and `squash_mask` leaves zeros for masks.

    `defaults` are the arguments of `update_mask` that a tensor's own configuration does not say. `groups` has those of each tensor, with what
    `get_arg_info_from_tensor_fqn` tells; `state` the masks by the tensors' names. No mask changes while `enable_mask_update` is False.
    """

    def __init__(self, defaults: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.defaults: dict[str, Any] = defaults or {}
        self.state: dict[str, dict] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        self.enable_mask_update = True

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("defaults", "state", "groups")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        parts = []
        for i, group in enumerate(self.groups):
            lines = [f"\tGroup {i}", f"\t    module: {group['module']}", *(f"\t    {k}: {group[k]}" for k in sorted(group) if k != "module")]
            parts.append("\n" + "\n".join(lines) + "\n")
        return f"{type(self).__name__} ({''.join(parts)})"

    def state_dict(self) -> dict[str, Any]:
        """`state`, and `groups` without the modules."""
        return {"state": self.state, "groups": [{k: v for k, v in group.items() if k not in KEYS_NOT_IN_STATE_DICT} for group in self.groups]}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Takes masks and groups of the same tensors of the model that was prepared; where a tensor has no mask yet, it is given one. RuntimeError for a
        tensor that the model has not, unless `strict` is False."""
        groups, states = copy.deepcopy(state_dict["groups"]), state_dict["state"]
        for tensor_fqn, state in states.items():
            found = get_arg_info_from_tensor_fqn(self.model, tensor_fqn)
            module, name = found["module"], found["tensor_name"]
            if strict and module is None:
                raise RuntimeError(f"Error loading {tensor_fqn} into the model")
            masks = [p for p in module.parametrizations[name] if isinstance(p, FakeSparsity)]
            if not masks:
                masks = [FakeSparsity(torch.ones(getattr(module, name).shape))]
                parametrize.register_parametrization(module, name, masks[0])
            if state.get("mask") is not None:
                masks[0].mask = state.pop("mask")
            for group in groups:
                if group["tensor_fqn"] == tensor_fqn:
                    group.update(found)
        self.__setstate__({"state": states, "groups": groups})

    def make_config_from_model(self, model: Module, SUPPORTED_MODULES: set[type[Module]] = SUPPORTED_MODULES) -> None:  # noqa: N803  (torch's name)
        """A configuration of the weights of all modules of these classes."""
        self.config, stack = [], [model]
        while stack:
            for child in stack.pop().children():
                if type(child) in SUPPORTED_MODULES:
                    self.config.append({"tensor_fqn": f"{module_to_fqn(model, child)}.weight"})
                else:
                    stack.append(child)

    def prepare(self, model: Module, config: list[dict[str, Any]] | None) -> None:
        """Puts masks of ones on tensors of the model: those of `config`, each a dict with `tensor_fqn` and arguments of its own, or (None) the weights of
        all linear layers. AssertionError for a configuration that contradicts itself."""
        self.model, self.config = model, config
        if self.config is None:
            self.make_config_from_model(model)
        for given in self.config:
            if not isinstance(given, dict):
                raise AssertionError("config elements should be dicts not modules i.e.:[{`tensor_fqn`: `foo.bar.weight`}, {`tensor_fqn`: ... }, ...]")
            if not isinstance(self.defaults, dict):
                raise AssertionError("defaults must be a dict")
            group = {**copy.deepcopy(self.defaults), **given}
            if group.get("tensor_fqn") is None:
                raise AssertionError("tensor_fqn is a required argument in the sparsity config which replaces previous `module` and [module]`fqn` arguments")
            found = get_arg_info_from_tensor_fqn(model, group["tensor_fqn"])
            for key, value in found.items():
                if key in group and group[key] != value and not (key == "tensor_fqn" and group[key] == f".{value}"):
                    raise AssertionError(f"Given both `{key}` and `tensor_fqn` in the config, it is expected them to agree!")
            self.groups.append({**group, **found})
        self._prepare()

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask", torch.ones_like(getattr(module, name)))
            self.state[group["tensor_fqn"]]["mask"] = mask
            parametrize.register_parametrization(module, name, group.get("parametrization", FakeSparsity)(mask))

    def squash_mask(self, params_to_keep: tuple[str, ...] | None = None, params_to_keep_per_layer: dict[str, tuple[str, ...]] | None = None,
                    *args: Any, **kwargs: Any) -> None:
        """Takes the masks off and leaves zeros in the tensors. The arguments of these names, of all tensors or by their modules' names, stay as the modules'
        `sparse_params`."""
        for group in self.groups:
            module = group["module"]
            parametrize.remove_parametrizations(module, group["tensor_name"], leave_parametrized=True)
            kept = {k: group[k] for k in (*(params_to_keep or ()), *((params_to_keep_per_layer or {}).get(group["module_fqn"]) or ()))}
            if kept:
                module.sparse_params = kept

    def convert(self, module: Module, mapping: dict[type[Module], type[Module]] | None = None, inplace: bool = False,
                parameterization: type[Module] = FakeSparsity) -> Module:
        """The module with its masked layers replaced by what `mapping` has for their classes (made by `from_dense`); a copy unless `inplace`.
        NotImplementedError without a mapping."""
        if mapping is None:
            raise NotImplementedError("Need to auto generate mapping ")
        if not inplace:
            module = copy.deepcopy(module)
        for name, child in list(module.named_children()):
            masked = module_contains_param(child, parameterization) and type_before_parametrizations(child) in mapping
            module._modules[name] = swap_module(child, mapping) if masked else self.convert(child, mapping, True, parameterization)
        return module

    def step(self, use_path: bool = True) -> None:
        """Chooses all masks again."""
        if self.enable_mask_update:
            with torch.no_grad():
                for group in self.groups:
                    self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module: Module, tensor_name: str, **kwargs: Any) -> None:
        """Gives the mask of one of a module's tensors other contents (`mask.data = ...`)."""
