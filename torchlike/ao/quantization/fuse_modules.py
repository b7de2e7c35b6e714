"""Layers and what follows them made one module."""
from __future__ import annotations

import copy
from collections.abc import Callable

from ...nn.modules import activation, batchnorm, conv
from ...nn.modules.linear import Identity, Linear
from ...nn.modules.module import Module
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ...nn.utils.parametrize import type_before_parametrizations
from ..nn.intrinsic.modules import ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU

_CONVOLUTIONS = {conv.Conv1d: (batchnorm.BatchNorm1d, ConvReLU1d), conv.Conv2d: (batchnorm.BatchNorm2d, ConvReLU2d), conv.Conv3d: (batchnorm.BatchNorm3d, ConvReLU3d)}


def _fused(modules: list[Module]) -> Module:
    """One module for a layer, its normalization, and ReLU. AssertionError for other sequences and in training."""
    kinds = tuple(map(type_before_parametrizations, modules))
    first, *rest = kinds
    norm, with_relu = _CONVOLUTIONS.get(first, (batchnorm.BatchNorm1d, LinearReLU) if first is Linear else (None, None))
    if norm is None or tuple(rest) not in ((norm,), (norm, activation.ReLU), (activation.ReLU,)) or (first is Linear and len(rest) == 2):
        raise AssertionError(f"did not find fuser method for: {kinds} ")
    layer = modules[0]
    if rest[0] is norm:
        if any(m.training for m in modules):
            raise AssertionError("Fusion only for eval!")
        layer = (fuse_linear_bn_eval if first is Linear else fuse_conv_bn_eval)(layer, modules[1])
    return layer if rest[-1] is norm else with_relu(layer, modules[-1])


def fuse_known_modules(mod_list: list[Module], is_qat: bool = False, additional_fuser_method_mapping: dict | None = None) -> list[Module]:
    """The fused module, and identities in the others' places."""
    own = (additional_fuser_method_mapping or {}).get(tuple(map(type_before_parametrizations, mod_list)))
    fused = _fused(mod_list) if own is None else own(is_qat, *mod_list)
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


def fuse_modules(model: Module, modules_to_fuse: list, inplace: bool = False, fuser_func: Callable = fuse_known_modules,
                 fuse_custom_config_dict: dict | None = None) -> Module:
    """The model (a copy, unless `inplace`) with each list of names made one module: a convolution or linear layer, its normalization, ReLU."""
    if not inplace:
        model = copy.deepcopy(model)
    extra = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    for names in ([modules_to_fuse] if all(isinstance(n, str) for n in modules_to_fuse) else modules_to_fuse):
        for name, made in zip(names, fuser_func([model.get_submodule(n) for n in names], False, extra)):
            owner, _, own = name.rpartition(".")
            setattr(model.get_submodule(owner), own, made)
    return model
