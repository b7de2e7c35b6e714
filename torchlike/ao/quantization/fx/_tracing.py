"""Traces for quantization: every node knows the module that it lies in, and what the user calls one step is one."""
from __future__ import annotations

from typing import Any

from ....fx._symbolic_trace import Tracer
from ....fx.graph_module import GraphModule
from ....nn.modules.module import Module
from ....nn.quantized import FloatFunctional, FXFloatFunctional
from ...nn.intrinsic.modules import _FusedModule


class QuantizationTracer(Tracer):
    """`node_name_to_scope` has the module of each node."""

    def __init__(self, skipped_module_names: list[str], skipped_module_classes: list[type]) -> None:
        super().__init__()
        self.skipped_module_names, self.skipped_module_classes = skipped_module_names, skipped_module_classes
        self.scope.module_type = None  # the model's own class is no place

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """torch's own layers, fused ones, and those that the user named."""
        return (super().is_leaf_module(m, module_qualified_name) or module_qualified_name in self.skipped_module_names
                or type(m) in self.skipped_module_classes or isinstance(m, _FusedModule))


def open_functionals(model: Module) -> None:
    """Put modules whose calls are traced through in the place of FloatFunctional."""
    for name, child in list(model.named_children()):
        if isinstance(child, FloatFunctional):
            model._modules[name] = FXFloatFunctional()
        else:
            open_functionals(child)


def trace(model: Module, names: list[str], classes: list[type]) -> tuple[GraphModule, dict[str, Any]]:
    """The model as a graph, and each node's module."""
    tracer = QuantizationTracer(names, classes)
    return GraphModule(model, tracer.trace(model)), tracer.node_name_to_scope
