"""Quantization of whole models by their graphs: prepare_fx, a few examples, convert_fx."""
from __future__ import annotations

import warnings
from typing import Any

from ..._core.history import outside
from ...fx.graph_module import _USER_PRESERVED_ATTRIBUTES_KEY, GraphModule
from ...nn.modules.module import Module
from .fx import _converting, _fusing, _preparing, _tracing
from .fx.custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from .qconfig_mapping import QConfigMapping

__all__ = ["attach_preserved_attrs_to_model", "convert_fx", "convert_to_reference_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


def attach_preserved_attrs_to_model(model: GraphModule, preserved_attrs: dict[str, Any]) -> None:
    """Give a graph's module attributes of the model that it was traced from; they stay when its graph changes."""
    model.meta[_USER_PRESERVED_ATTRIBUTES_KEY] = dict(preserved_attrs)
    for name, value in preserved_attrs.items():
        setattr(model, name, value)


def _own(model: Module, names: list[str]) -> dict[str, Any]:
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def _config(given: Any, kind: type, function: str, argument: str) -> Any:
    if isinstance(given, dict):
        warnings.warn(f"Passing a {argument}_dict to {function} is deprecated and will not be supported in a future version. Please pass in a {kind.__name__} "
                      "instead.", FutureWarning, stacklevel=outside())
        return kind.from_dict(given)
    return kind() if given is None else given


def _mapping(given: Any, function: str) -> QConfigMapping:
    if isinstance(given, dict):
        warnings.warn(f"Passing a QConfig dictionary to {function} is deprecated and will not be supported in a future version. Please pass in a QConfigMapping "
                      "instead.", FutureWarning, stacklevel=outside())
        return QConfigMapping.from_dict(given)
    if not isinstance(given, QConfigMapping):
        raise AssertionError("qconfig_mapping must be a QConfigMapping")
    return given


def _need_graph(model: Any) -> None:
    if not isinstance(model, GraphModule):
        raise ValueError(f"input model must be a GraphModule, Got type:{type(model)} Please make sure to follow the tutorials.")


def _fuse_fx(model: GraphModule, is_qat: bool) -> GraphModule:
    """The same of a graph that is there already (TorchBench asks so which parts of a model have one). ValueError if it is none."""
    _need_graph(model)
    return _fusing.fuse(model, is_qat)


def fuse_fx(model: Module, fuse_custom_config: FuseCustomConfig | dict[str, Any] | None = None) -> GraphModule:
    """The model as a graph in which convolutions and linear layers are one with their normalizations and ReLU. In eval mode; AssertionError else."""
    config = _config(fuse_custom_config, FuseCustomConfig, "fuse", "fuse_custom_config")
    kept = _own(model, config.preserved_attributes)
    made = _fuse_fx(_tracing.trace(model, [], [])[0], False)
    attach_preserved_attrs_to_model(made, kept)
    return made


def _prepare(model: Module, qconfig_mapping: Any, is_qat: bool, prepare_custom_config: Any) -> GraphModule:
    config = _config(prepare_custom_config, PrepareCustomConfig, "prepare", "prepare_custom_config")
    _tracing.open_functionals(model)
    kept = _own(model, config.preserved_attributes)
    custom = [kind for table in config.float_to_observed_mapping.values() for kind in table]
    graph, scopes = _tracing.trace(model, list(config.non_traceable_module_names), [*config.non_traceable_module_classes, *custom])
    made = _preparing.prepare(_fusing.fuse(graph, is_qat), _mapping(qconfig_mapping, "prepare"), is_qat, scopes, config)
    attach_preserved_attrs_to_model(made, kept)
    return made


def prepare_fx(model: Module, qconfig_mapping: QConfigMapping | dict[str, Any], example_inputs: tuple[Any, ...],
               prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None) -> GraphModule:
    """The model as a graph with observers, by which convert_fx quantizes once they have seen examples. In eval mode.
    `example_inputs` are not looked at: shapes do not matter here."""
    return _prepare(model, qconfig_mapping, False, prepare_custom_config)


def prepare_qat_fx(model: Module, qconfig_mapping: QConfigMapping | dict[str, Any], example_inputs: tuple[Any, ...],
                   prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None) -> GraphModule:
    """The same for training: layers and what is observed are rounded as they will be, with gradients."""
    return _prepare(model, qconfig_mapping, True, prepare_custom_config)


def convert_fx(graph_module: GraphModule, convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None, _remove_qconfig: bool = True,
               qconfig_mapping: QConfigMapping | dict[str, Any] | None = None) -> GraphModule:
    """The prepared model with quantized layers and functions. A `qconfig_mapping` may say None where what was observed shall stay in floats."""
    return _convert(graph_module, False, convert_custom_config, _remove_qconfig, qconfig_mapping)


def convert_to_reference_fx(graph_module: GraphModule, convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None, _remove_qconfig: bool = True,
                            qconfig_mapping: QConfigMapping | dict[str, Any] | None = None) -> GraphModule:
    """The same in floats: each quantized tensor is a step to integers and one back, each layer rounds its weight."""
    return _convert(graph_module, True, convert_custom_config, _remove_qconfig, qconfig_mapping)


def _convert(model: GraphModule, is_reference: bool, config: Any, remove_qconfig: bool, mapping: Any) -> GraphModule:
    config = _config(config, ConvertCustomConfig, "convert", "convert_custom_config")
    _need_graph(model)
    kept = _own(model, config.preserved_attributes)
    made = _converting.convert(model, is_reference, config, remove_qconfig, None if mapping is None else _mapping(mapping, "convert"))
    attach_preserved_attrs_to_model(made, kept)
    return made
