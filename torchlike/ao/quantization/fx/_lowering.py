"""A graph that computes in floats between steps to integers and back as one of quantized layers and functions.

What has no quantized form here stays as it is: floats, rounded before and behind.
"""
from __future__ import annotations

import operator
from typing import Any

import torchlike as torch  # its functions as graphs have them

from ...._core import dtype as dt
from ...._quantized.operators import _FUNCTIONS, quantized
from ....fx.graph_module import GraphModule
from ....fx.node import Node, map_arg
from ....nn import functional
from ....nn.modules import activation, batchnorm, dropout, instancenorm, normalization
from ....nn.modules.module import Module
from ...nn import intrinsic
from ...nn import quantized as static
from ...nn.quantized import dynamic, reference
from ..qconfig_mapping import FIXED
from ..quantization_mappings import DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS
from . import _operations as ops
from ._configuring import known_value, new_name

_QUANTIZED = {reference.Linear: static.Linear, reference.Conv1d: static.Conv1d, reference.Conv2d: static.Conv2d, reference.Conv3d: static.Conv3d,
              intrinsic.LinearReLU: intrinsic.quantized.LinearReLU, intrinsic.ConvReLU1d: intrinsic.quantized.ConvReLU1d,
              intrinsic.ConvReLU2d: intrinsic.quantized.ConvReLU2d, intrinsic.ConvReLU3d: intrinsic.quantized.ConvReLU3d}
_WITH_RELU = {reference.Linear: intrinsic.quantized.LinearReLU, reference.Conv1d: intrinsic.quantized.ConvReLU1d,
              reference.Conv2d: intrinsic.quantized.ConvReLU2d, reference.Conv3d: intrinsic.quantized.ConvReLU3d}
_DYNAMIC = {reference.Linear: dynamic.Linear, intrinsic.LinearReLU: intrinsic.quantized.dynamic.LinearReLU}
_OWN_SCALE = {batchnorm.BatchNorm2d: static.BatchNorm2d, batchnorm.BatchNorm3d: static.BatchNorm3d, activation.ELU: static.ELU,
              instancenorm.InstanceNorm1d: static.InstanceNorm1d, instancenorm.InstanceNorm2d: static.InstanceNorm2d,
              instancenorm.InstanceNorm3d: static.InstanceNorm3d, normalization.LayerNorm: static.LayerNorm, activation.Softmax: static.Softmax,
              activation.PReLU: static.PReLU, activation.LeakyReLU: static.LeakyReLU, activation.Hardswish: static.Hardswish, dropout.Dropout: static.Dropout,
              intrinsic.BNReLU2d: intrinsic.quantized.BNReLU2d, intrinsic.BNReLU3d: intrinsic.quantized.BNReLU3d}
_OWN_SCALE_FUNCTIONS = {functional.elu: "elu", functional.hardswish: "hardswish", functional.leaky_relu: "leaky_relu", functional.dropout: "dropout",
                        functional.layer_norm: "layer_norm", functional.instance_norm: "instance_norm"}
_SAME_SCALE = {*ops.COMPUTED, *FIXED}
_PRODUCTS = {functional.linear: "linear", functional.conv1d: "conv1d", functional.conv2d: "conv2d", functional.conv3d: "conv3d"}


def _back(x: Any) -> bool:
    return isinstance(x, Node) and x.op == "call_method" and x.target == "dequantize"


def _calls(x: Any, name: str) -> bool:
    return isinstance(x, Node) and x.op == "call_function" and x.target is getattr(torch, name)


class _Lowering:
    def __init__(self, model: GraphModule, qconfigs: dict[str, Any], scopes: dict[str, Any]) -> None:
        self.model, self.graph, self.qconfigs, self.scopes = model, model.graph, qconfigs, scopes
        self.modules = dict(model.named_modules(remove_duplicate=False))

    def _kind(self, node: Any) -> Any:
        if isinstance(node, Node) and node.op == "call_module":
            return type(self.modules[node.target])
        return node.target if isinstance(node, Node) and node.op == "call_function" else None

    def _set(self, node: Node, module: Module) -> None:
        """In the float module's place; `modules` keeps that one, for its other calls."""
        self.model.set_submodule(node.target, module)

    def _steps(self) -> list[Node]:
        return [n for n in self.graph.nodes if _calls(n, "quantize_per_tensor")]

    def _behind(self, step: Node, kinds: Any, places: tuple[int, ...]) -> tuple[Node | None, Node | None]:
        """The operation that a step to integers rounds, and ReLU between; None where it is another one or reads something else."""
        relu, node = None, step.args[0]
        if self._kind(node) in ops.RELUS:
            relu, node = node, node.args[0]
        if self._kind(node) not in kinds or (node.name in self.qconfigs and self.qconfigs[node.name] is None) or max(places) >= len(node.args):
            return None, None
        read = [node.args[i] for i in places if isinstance(node.args[i], Node)]
        return (node, relu) if read and all(map(_back, read)) else (None, None)

    def _scale(self, step: Node) -> tuple[Any, Any]:
        return getattr(self.model, step.args[1].target), getattr(self.model, step.args[2].target)

    def _erase(self, step: Node, by: Node, numbers: bool = True) -> None:
        step.replace_all_uses_with(by)
        read = step.args[1:3]
        self.graph.erase_node(step)
        for node in read if numbers else ():
            self.graph.erase_node(node)

    # -- layers ----------------------------------------------------------------------------------------------------------

    def layers(self) -> None:
        """Layers between steps."""
        for step in self._steps():
            node, relu = self._behind(step, _QUANTIZED, (0,))
            if node is None:
                continue
            module = self.modules[node.target]
            if isinstance(module, intrinsic.modules._FusedModule) and type(module[0]) not in _QUANTIZED:
                continue
            made = (_WITH_RELU if relu is not None and type(module) in _WITH_RELU else _QUANTIZED)[type(module)]
            self._set(node, made.from_reference(module, *self._scale(step)))
            node.replace_input_with(node.args[0], node.args[0].args[0])
            self._erase(step, node)
            if relu is not None:
                self.graph.erase_node(relu)

    def dynamic_layers(self) -> None:
        """Layers whose inputs are quantized as they come."""
        for node in list(self.graph.nodes):
            kind = self._kind(node)
            if node.op != "call_module" or kind not in (*_DYNAMIC, *ops.RECURRENT) or not node.args or not _back(node.args[0]) or \
                    not _calls(node.args[0].args[0], "quantize_per_tensor_dynamic"):
                continue
            module, before = self.modules[node.target], node.args[0]
            if kind in ops.RECURRENT:
                made = DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS[kind].from_float(module)
            elif kind is intrinsic.LinearReLU and type(module[0]) is not reference.Linear:
                continue
            else:
                made = _DYNAMIC[kind].from_reference(module)
            self._set(node, made)
            node.replace_input_with(before, before.args[0].args[0])

    # -- functions with weights ------------------------------------------------------------------------------------------

    def _packed(self, node: Node) -> Node | None:
        """A function's weight and bias, ready for products, as an attribute of the graph's module; None where they depend on the inputs."""
        name = _PRODUCTS[node.target]
        places = ["bias"] if name == "linear" else ["bias", "stride", "padding", "dilation", "groups"]
        given = dict(zip(places, node.args[2:])) | dict(node.kwargs)

        def value(of: Node) -> Any:
            return known_value(of, self.model, {})
        try:
            values = {k: map_arg(v, value) for k, v in given.items()}
            weight = value(node.args[1].args[0])
        except KeyError:
            return None
        if weight.dtype is dt.float16:
            packed = quantized.linear_prepack_fp16(weight.float(), values.get("bias"))
        elif name != "linear":
            dims = int(name[4])
            defaults = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1} | values
            spread = [[v] * dims if isinstance(v, int) else list(v) for v in (defaults[k] for k in ("stride", "padding", "dilation"))]
            packed = getattr(quantized, f"{name}_prepack")(weight, values.get("bias"), *spread, defaults["groups"])
        else:
            packed = quantized.linear_prepack(weight, values.get("bias"))
        attribute = new_name(self.model, self.scopes[node.name][0] + "_packed_weight_")
        setattr(self.model, attribute, packed)
        return self.graph.create_node("get_attr", attribute)

    def products(self) -> None:
        """Functions between steps whose weights are quantized, too."""
        for step in self._steps():
            node, relu = self._behind(step, _PRODUCTS, (0, 1))
            if node is None:
                continue
            with self.graph.inserting_before(step.args[1]):
                packed = self._packed(node)
            if packed is None:
                continue
            scale, zero_point = step.args[1], step.args[2]
            node.target = getattr(quantized, _PRODUCTS[node.target] + ("_relu" if relu is not None else ""))
            node.args, node.kwargs = (node.args[0].args[0], packed, scale, zero_point), {}
            zero_point.append(node)
            self._erase(step, node, numbers=False)
            if relu is not None:
                self.graph.erase_node(relu)

    def dynamic_products(self) -> None:
        """Linear functions whose inputs are quantized as they come."""
        for node in list(self.graph.nodes):
            relu = next(iter(node.users)) if len(node.users) == 1 else None
            if self._kind(relu) not in (functional.relu, activation.ReLU):
                relu = None
            if self._kind(node) is not functional.linear or (node.name in self.qconfigs and self.qconfigs[node.name] is None) or \
                    not (_back(node.args[0]) and _back(node.args[1]) and _calls(node.args[0].args[0], "quantize_per_tensor_dynamic")):
                continue
            step = node.args[0].args[0]
            with self.graph.inserting_before(node):
                packed = self._packed(node)
            if packed is None:
                continue
            half = step.args[1] is dt.float16
            node.target = getattr(quantized, f"linear{'_relu' if relu is not None else ''}_dynamic{'_fp16' if half else ''}")
            node.args, node.kwargs = (step.args[0], packed, *(() if half else step.args[2:])), {}
            if relu is not None:
                relu.replace_all_uses_with(node)
                self.graph.erase_node(relu)

    # -- what has no weights ---------------------------------------------------------------------------------------------

    def sums(self) -> None:
        """Sums and products of quantized tensors, and of one with a number."""
        names = {k: "add" if k in (torch.add, operator.add) else "mul" for k in ops.SUMS} | {torch.matmul: "matmul"}
        for step in self._steps():
            node, relu = self._behind(step, names, (0, 1))
            if node is None:
                continue
            several = sum(map(_back, node.args)) == 2
            args = [a.args[0] if _back(a) else a for a in node.args]
            with self.graph.inserting_after(step):
                made = self.graph.call_function(getattr(quantized, names[node.target] + ("_relu" if relu is not None else "")),
                                                (*args, *(step.args[1:3] if several else ())))
            self._erase(step, made, numbers=False)
            for old in ([relu] if relu is not None else []) + [node]:
                self.graph.erase_node(old)

    def sizes(self) -> None:
        """Questions for shapes ask the quantized tensor."""
        for node in self.graph.nodes:
            asks = (node.op == "call_function" and node.target is getattr and node.args[1] == "shape") or \
                (node.op == "call_method" and node.target in ("shape", "size"))
            if asks and _back(node.args[0]):
                node.args = (node.args[0].args[0], *node.args[1:])

    def others(self) -> None:
        """Operations that compute on quantized tensors."""
        for step in self._steps():
            node = step.args[0]
            kind = ops.kind_of(node, self.modules)
            if not (kind in _SAME_SCALE or kind in _OWN_SCALE or (kind in _OWN_SCALE_FUNCTIONS and _OWN_SCALE_FUNCTIONS[kind] in _FUNCTIONS)):
                continue
            read = node.args[0] if node.args else next(iter(node.kwargs.values()))
            several = list(read) if isinstance(read, (list, tuple)) else [read]
            if not all(map(_back, several)):
                continue
            if kind in _OWN_SCALE:
                self._set(node, _OWN_SCALE[kind].from_reference(self.modules[node.target], *self._scale(step)))
            for before in dict.fromkeys(several):
                node.replace_input_with(before, before.args[0])
            if kind not in _OWN_SCALE_FUNCTIONS:
                self._erase(step, node)
                continue
            scale, zero_point = step.args[1:3]
            kwargs = {k: v for k, v in node.kwargs.items() if k != "inplace" or kind is functional.leaky_relu}
            with self.graph.inserting_after(zero_point):
                made = self.graph.call_function(getattr(quantized, _OWN_SCALE_FUNCTIONS[kind]), node.args,
                                                {**kwargs, "output_scale": scale, "output_zero_point": zero_point})
            step.replace_all_uses_with(made)
            self.graph.erase_node(step)
            self.graph.erase_node(node)


def lower(model: GraphModule, qconfigs: dict[str, Any], scopes: dict[str, Any]) -> GraphModule:
    """The graph of quantized layers and functions."""
    work = _Lowering(model, qconfigs, scopes)
    work.layers()
    work.dynamic_layers()
    work.products()
    work.dynamic_products()
    work.sums()
    work.sizes()
    work.others()
    model.graph.eliminate_dead_code()
    model = GraphModule(model, model.graph)
    model.graph.lint()
    return model
