"""Models made quantized ones: layers get a configuration, and are exchanged for quantized ones by it."""
from __future__ import annotations

import copy
import inspect
import warnings
from typing import Any

from ..._core import dtype as dt
from ..._core.history import outside
from ...nn.modules import rnn
from ...nn.modules.container import Sequential
from ...nn.modules.dropout import Dropout
from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ...nn.quantized import FloatFunctional
from ...nn.utils.parametrize import type_before_parametrizations
from ..nn.intrinsic.modules import _FusedModule
from ..nn.intrinsic.qat.normalized import _Normalized
from .fake_quantize import FakeQuantizeBase
from .observer import ObserverBase
from .qconfig import default_dynamic_qconfig, float16_dynamic_qconfig
from .quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
)
from .stubs import DeQuantStub

_DYNAMIC = (Linear, rnn.LSTM, rnn.GRU, rnn.LSTMCell, rnn.RNNCell, rnn.GRUCell)
_CONFIGURATIONS = {dt.qint8: default_dynamic_qconfig, dt.float16: float16_dynamic_qconfig}


def propagate_qconfig_(module: Module, qconfig_dict: dict | None = None, prepare_custom_config_dict: dict | None = None) -> None:
    """Give every module inside a `qconfig`: its own, that of its name, of its class, or of the module around it."""
    left_out = prepare_custom_config_dict or {}
    _propagate(module, qconfig_dict or {}, None, "", left_out)


def _propagate(module: Module, configurations: dict, around: Any, prefix: str, left_out: dict) -> None:
    found = configurations.get(type_before_parametrizations(module), around)
    found = configurations.get(prefix, found)
    module.qconfig = found = getattr(module, "qconfig", found)
    for name, child in module.named_children():
        if name not in left_out.get("non_traceable_module_name", ()) and type(child) not in left_out.get("non_traceable_module_class", ()):
            _propagate(child, configurations, found, f"{prefix}.{name}" if prefix else name, left_out)


def swap_module(mod: Module, mapping: dict, custom_module_class_mapping: dict, use_precomputed_fake_quant: bool = False) -> Module:
    """What takes the module's place, which has its hooks; the module itself where it has no configuration or nothing takes its place."""
    if getattr(mod, "qconfig", None) is None:
        return mod
    kind = type_before_parametrizations(mod)
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        make = mapping[kind].from_float
        options = {"use_precomputed_fake_quant": use_precomputed_fake_quant} if "use_precomputed_fake_quant" in inspect.signature(make).parameters else {}
        made = make(mod, **options)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    return made


def _observer_forward_hook(self: Module, input: Any, output: Any) -> Any:
    return self.activation_post_process(output)


def _observe(module: Module) -> None:
    """Let the module's results go through an observer."""
    if getattr(module, "qconfig", None) is not None and not isinstance(module, DeQuantStub):
        module.add_module("activation_post_process", module.qconfig.activation())
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _observe_inside(module: Module, kinds: set, others: set, custom: dict) -> None:
    for name, child in list(module.named_children()):
        kind = type_before_parametrizations(child)
        if kind is Dropout:
            continue
        if issubclass(kind, FloatFunctional):
            if getattr(child, "qconfig", None) is not None:
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, (_FusedModule, _Normalized)) or kind in others:
            _observe(child)
        elif kind in custom and getattr(child, "qconfig", None) is not None:
            setattr(module, name, custom[kind].from_float(child))
            _observe(getattr(module, name))
        else:
            _observe_inside(child, kinds, others, custom)
    if not any(True for _ in module.children()) and type_before_parametrizations(module) in kinds and not isinstance(module, Sequential):
        _observe(module)


def prepare(model: Module, inplace: bool = False, allow_list: set | None = None, observer_non_leaf_module_list: set | None = None,
            prepare_custom_config_dict: dict | None = None) -> Module:
    """The model with observers behind the modules that have a `qconfig` and can be quantized. It is run on examples then, and converted."""
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn("no module has a `qconfig`: assign one to the model or to modules of it", stacklevel=outside())
    _observe_inside(model, get_default_qconfig_propagation_list() if allow_list is None else allow_list, observer_non_leaf_module_list or set(),
                    (prepare_custom_config_dict or {}).get("float_to_observed_custom_module_class", {}))
    return model


def prepare_qat(model: Module, mapping: dict | None = None, inplace: bool = False) -> Module:
    """The model with layers that round their weights and results as quantized ones would, for training. AssertionError unless it is in training mode."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping, inplace=True, remove_qconfig=False)
    return prepare(model, inplace=True, observer_non_leaf_module_list=set(mapping.values()))


def quantize(model: Module, run_fn: Any, run_args: Any, mapping: dict | None = None, inplace: bool = False) -> Module:
    """prepare, `run_fn(model, *run_args)`, and convert."""
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def convert(module: Module, mapping: dict | None = None, inplace: bool = False, remove_qconfig: bool = True, is_reference: bool = False,
            convert_custom_config_dict: dict | None = None, use_precomputed_fake_quant: bool = False) -> Module:
    """The model with modules exchanged by `mapping`, from class to class, where they have a configuration; without one, observed modules by quantized ones."""
    if is_reference:
        raise RuntimeError("convert(is_reference=True) is not supported yet by torchlike")
    mapping = get_default_static_quant_module_mappings() if mapping is None else mapping
    if not inplace:
        module = copy.deepcopy(module)
    _convert(module, mapping, (convert_custom_config_dict or {}).get("observed_to_quantized_custom_module_class", {}), use_precomputed_fake_quant)
    if remove_qconfig:
        for each in list(module.modules()):
            if hasattr(each, "qconfig"):
                del each.qconfig
            if isinstance(getattr(each, "activation_post_process", None), (ObserverBase, FakeQuantizeBase)):
                del each.activation_post_process
            for number in [n for n, hook in each._forward_hooks.items() if hook is _observer_forward_hook]:
                del each._forward_hooks[number]
    return module


def _convert(module: Module, mapping: dict, custom: dict, precomputed: bool) -> None:
    for name, child in list(module.named_children()):
        if not isinstance(child, (_FusedModule, _Normalized)) and type_before_parametrizations(child) not in custom:
            _convert(child, mapping, custom, precomputed)
        module._modules[name] = swap_module(child, mapping, custom, precomputed)


def quantize_dynamic(model: Module, qconfig_spec: dict | set | None = None, dtype: Any = dt.qint8, mapping: dict | None = None, inplace: bool = False) -> Module:
    """The model with layers whose weights are quantized, and whose inputs are as they come.

    `qconfig_spec` names layers by class or name: a dictionary of configurations, or a set of what gets that of `dtype` (qint8, or float16: weights of half
    precision). ValueError for a type without a configuration.
    """
    warnings.warn("torch.ao.quantization is deprecated in PyTorch", DeprecationWarning, stacklevel=outside())
    if qconfig_spec is None:
        if dtype not in _CONFIGURATIONS:
            raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
        qconfig_spec = dict.fromkeys(_DYNAMIC, _CONFIGURATIONS[dtype])
    elif isinstance(qconfig_spec, set):
        if dtype not in _CONFIGURATIONS:
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        qconfig_spec = dict.fromkeys(qconfig_spec, _CONFIGURATIONS[dtype])
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, get_default_dynamic_quant_module_mappings() if mapping is None else mapping, inplace=True)
