"""Layers and what follows them made one module."""
from __future__ import annotations

import copy
from collections.abc import Callable

from ...nn.modules.linear import Identity
from ...nn.modules.module import Module
from ...nn.utils.parametrize import type_before_parametrizations
from .fuser_method_mappings import get_fuser_method

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(mod_list: list[Module], is_qat: bool = False, additional_fuser_method_mapping: dict | None = None) -> list[Module]:
    """The fused module, and identities in the others' places."""
    fused = get_fuser_method(tuple(map(type_before_parametrizations, mod_list)), additional_fuser_method_mapping)(is_qat, *mod_list)
    for hook in mod_list[0]._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    identities = [Identity() for _ in mod_list[1:]]
    for identity in identities:
        identity.training = mod_list[0].training
    return [fused, *identities]


def _fuse(model: Module, modules_to_fuse: list, is_qat: bool, inplace: bool, fuser_func: Callable, custom: dict | None) -> Module:
    if not inplace:
        model = copy.deepcopy(model)
    extra = (custom or {}).get("additional_fuser_method_mapping", {})
    for names in ([modules_to_fuse] if all(isinstance(n, str) for n in modules_to_fuse) else modules_to_fuse):
        for name, made in zip(names, fuser_func([model.get_submodule(n) for n in names], is_qat, extra)):
            owner, _, own = name.rpartition(".")
            setattr(model.get_submodule(owner), own, made)
    return model


def fuse_modules(model: Module, modules_to_fuse: list, inplace: bool = False, fuser_func: Callable = fuse_known_modules,
                 fuse_custom_config_dict: dict | None = None) -> Module:
    """The model (a copy, unless `inplace`) with each list of names made one module: a convolution or linear layer, its normalization, ReLU."""
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(model: Module, modules_to_fuse: list, inplace: bool = False, fuser_func: Callable = fuse_known_modules,
                     fuse_custom_config_dict: dict | None = None) -> Module:
    """The same for training that knows of quantization: normalizations stay modules of their own inside of the fused ones."""
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
