"""Each node's configuration, by a QConfigMapping."""
from __future__ import annotations

import operator
import re
from collections import Counter
from typing import Any

from ....fx.graph_module import GraphModule
from ....fx.node import Node, map_arg
from ....nn.modules.module import Module
from ...nn.intrinsic.modules import _FusedModule
from ..fake_quantize import FakeQuantizeBase
from ..observer import ObserverBase
from ..qconfig import qconfig_equals
from ..qconfig_mapping import QConfigMapping


def is_observer(module: Module) -> bool:
    """Whether a module looks at what goes through it."""
    return isinstance(module, (ObserverBase, FakeQuantizeBase))


def parent(name: str) -> str:
    """The name of the module around."""
    return name.rpartition(".")[0]


def new_name(module: Module, prefix: str) -> str:
    """`prefix` (dots as underscores) with the first number that is no attribute yet."""
    prefix, number = prefix.replace(".", "_"), 0
    while hasattr(module, f"{prefix}{number}"):
        number += 1
    return f"{prefix}{number}"


def known_value(node: Node, model: Module, modules: dict[str, Module]) -> Any:
    """What a node is that does not depend on the graph's inputs. KeyError for one that does, or that calls another module than these."""
    if node.op == "get_attr":
        return operator.attrgetter(node.target)(model)
    if node.op == "placeholder":
        raise KeyError(node.name)
    args, kwargs = map_arg((node.args, node.kwargs), lambda of: known_value(of, model, modules))
    if node.op == "call_module":
        return modules[node.target](*args, **kwargs)
    if node.op == "call_method":
        return getattr(args[0], node.target)(*args[1:], **kwargs)
    return node.target(*args, **kwargs)


def follow_fusion(model: GraphModule, mapping: QConfigMapping) -> None:
    """What is said of a layer's class holds for those fused of it. LookupError where their parts are to be quantized otherwise."""
    kinds = mapping.object_type_qconfigs
    if not kinds:
        return
    modules = dict(model.named_modules())
    for node in model.graph.nodes:
        fused = modules.get(node.target) if node.op == "call_module" else None
        if isinstance(fused, _FusedModule):
            first, *rest = fused
            qconfig = kinds.get(type(first))
            for part in rest:
                if not qconfig_equals(kinds.get(type(part)), qconfig):
                    raise LookupError(f"During fusion, we need to specify the same qconfigs for all module types in {type(fused)} offending type: {type(part)}")
            if qconfig is not None:
                kinds[type(fused)] = qconfig


def _by_place(mapping: QConfigMapping, kind: Any, name: str, otherwise: Any) -> Any:
    found = mapping.object_type_qconfigs.get(kind, otherwise)
    found = next((q for pattern, q in mapping.module_name_regex_qconfigs.items() if re.match(pattern, name)), found)
    while name:
        if name in mapping.module_name_qconfigs:
            return mapping.module_name_qconfigs[name]
        name = parent(name)
    return found


def configurations(graph: Any, modules: dict[str, Module], mapping: QConfigMapping, scopes: dict[str, Any]) -> dict[str, Any]:
    """By the names of nodes; modules get theirs as `qconfig`, too."""
    found: dict[str, Any] = {}
    numbers: Counter = Counter()
    for node in graph.nodes:
        qconfig = None
        if node.op == "get_attr":
            owner = parent(node.target)
            qconfig = _by_place(mapping, type(modules[owner]), owner, mapping.global_qconfig)
        elif node.op in ("call_function", "call_method"):
            path, kind = scopes[node.name]
            if node.op == "call_function":
                qconfig = _by_place(mapping, kind, path, mapping.object_type_qconfigs.get(node.target, mapping.global_qconfig))
                qconfig = mapping.module_name_object_type_order_qconfigs.get((path, node.target, numbers[path, node.target]), qconfig)
                numbers[path, node.target] += 1
            else:
                qconfig = _by_place(mapping, kind, path, _by_place(mapping, node.target, path, mapping.global_qconfig))
        elif node.op == "call_module":
            module = modules[node.target]
            if is_observer(module):
                continue
            qconfig = _by_place(mapping, type(module), node.target, mapping.global_qconfig)
            path, kind = scopes[node.name]
            place = parent(path), kind
            qconfig = mapping.module_name_object_type_order_qconfigs.get((*place, numbers[place]), qconfig)
            numbers[place] += 1
            module.qconfig = qconfig
        found[node.name] = qconfig
    return found
