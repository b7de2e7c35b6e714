"""An observed graph as one that quantizes: observers become steps to integers and back, layers round their weights."""
from __future__ import annotations

import copy
from typing import Any

import torchlike as torch  # its functions as graphs have them

from ...._core import dtype as dt
from ...._qscheme import SCHEMES
from ...._tensor import Tensor
from ....backends import quantized as engine
from ....fx.graph_module import GraphModule
from ....fx.node import Node
from ....nn import functional
from ....ops.from_data import tensor
from ...nn.intrinsic.modules import _FusedModule
from ...nn.quantized import reference
from ..observer import PlaceholderObserver
from ..qconfig import qconfig_equals
from ..qconfig_mapping import QConfigMapping
from . import _operations as ops
from ._configuring import configurations, follow_fusion, is_observer, known_value, new_name
from ._lowering import lower
from ._preparing import QAT, Prepared
from .custom_config import ConvertCustomConfig

_FORMS = {kind: getattr(reference, kind.__name__) for kind in ops.LAYERS}


def qparams_of(observer: Any) -> dict[str, Any]:
    """What an observer has found, as a quantized tensor has it."""
    scheme = getattr(observer, "qscheme", None)
    if scheme is None or isinstance(observer, PlaceholderObserver):
        return {"qscheme": None, "dtype": observer.dtype}
    scale, zero_point = observer.calculate_qparams()
    made = {"qscheme": SCHEMES["per_tensor_affine"] if scheme.name.startswith("per_tensor") else scheme, "dtype": observer.dtype, "scale": scale,
            "zero_point": zero_point, "quant_min": getattr(observer, "quant_min", None), "quant_max": getattr(observer, "quant_max", None)}
    if scheme.name.startswith("per_channel"):
        made["axis"] = observer.ch_axis
        if scheme.name == "per_channel_symmetric":
            made["qscheme"] = SCHEMES["per_channel_affine"]
    return made


class _Converter:
    def __init__(self, model: GraphModule, state: Prepared, custom: ConvertCustomConfig, mapping: QConfigMapping | None) -> None:
        self.model, self.graph, self.state = model, model.graph, state
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.qconfigs = state.qconfigs if mapping is None else self._changed(mapping)
        self.custom = {observed: made for table in custom.observed_to_quantized_mapping.values() for observed, made in table.items()}
        self.custom_nodes: set[Node] = set()
        self.device = next((p.device for p in model.parameters()), None)

    def _changed(self, mapping: QConfigMapping) -> dict[str, Any]:
        """Configurations of a mapping that may leave out what was observed. AssertionError where it asks for something else."""
        mapping, before = copy.deepcopy(mapping), self.state.mapping
        if self.state.is_qat:
            mapping.object_type_qconfigs.update({QAT[k]: q for k, q in list(mapping.object_type_qconfigs.items()) if k in QAT})
        follow_fusion(self.model, mapping)
        if not qconfig_equals(before.global_qconfig, mapping.global_qconfig):
            raise AssertionError("Expected global qconfigs to be the same in the prepare and convert quantization configs")
        for word, name in (("object_type", "object_type_qconfigs"), ("module_name", "module_name_qconfigs"), ("module_name_regex", "module_name_regex_qconfigs")):
            old, new = getattr(before, name), getattr(mapping, name)
            for key, qconfig in old.items():
                if key not in new:
                    raise AssertionError(f"Missing key {word} {key} in convert QConfigMapping when it was present in prepare")
                if new[key] is not None and not qconfig_equals(qconfig, new[key]):
                    raise AssertionError(f"Expected convert QConfigMapping to have the same qconfig as prepare for key {word} {key}; prepare: {qconfig}; "
                                         f"convert: {new[key]}")
        found = configurations(self.graph, dict(self.modules), mapping, self.state.scopes)
        for name, qconfig in self.state.qconfigs.items():
            if name not in found:
                raise AssertionError(f"Expected key {name} in convert node_name_to_qconfig")
            if found[name] is not None and not qconfig_equals(qconfig, found[name]):
                raise AssertionError(f"Expected k {name} to have the same value in prepare and convert QConfigMappings, but {qconfig} was updated to {found[name]}")
        return found

    def _unwanted(self, x: Any) -> bool:
        return isinstance(x, Node) and x.name in self.qconfigs and self.qconfigs[x.name] is None

    # -- weights of functions --------------------------------------------------------------------------------------------

    def observe_weights(self) -> None:
        """Show each function's weight to its observer."""
        for node in self.graph.nodes:
            if node.op == "call_function":
                for arg in node.args:
                    if isinstance(arg, Node) and ops.place_of(node, arg) == "weight" and arg.op == "call_module" and is_observer(self.modules[arg.target]):
                        try:
                            known_value(arg, self.model, self.modules)
                        except KeyError:
                            continue

    # -- observers -------------------------------------------------------------------------------------------------------

    def _number(self, name: str, value: Any) -> Node:
        name = new_name(self.model, name)
        self.model.register_buffer(name, value.detach().clone() if isinstance(value, Tensor) else tensor(value, device=self.device))
        return self.graph.create_node("get_attr", name)

    def _place(self, node: Node) -> str:
        """Where an observer belongs: the module of what it observes, or `_input` of what reads it."""
        seen = node.args[0]
        prefix = ""
        if seen.name in self.qconfigs and self.qconfigs[seen.name] is None:
            users = list(node.users)
            seen = next((u for u in users if u.op == "call_function" and u.target is functional.linear), users[0] if users else None)
            prefix = "_input"
        path = self.state.scopes[seen.name][0] if seen is not None and seen.name in self.state.scopes else ""
        return path + prefix

    def step(self, node: Node) -> None:
        """An observer as a step to integers (or float16) and back; nothing where nobody wants it."""
        observer = self.modules[node.target]
        kind, dynamic, source = observer.dtype, bool(getattr(observer, "is_dynamic", False)), node.args[0]
        if all(self._unwanted(x) for x in (*node.args, *node.users)) or not (dynamic or kind in (dt.quint8, dt.qint8, dt.qint32, dt.float16)):
            node.replace_all_uses_with(source)
            self.graph.erase_node(node)
            return
        with self.graph.inserting_before(node):
            if dynamic:
                made = self.graph.call_function(torch.quantize_per_tensor_dynamic, (source, kind, engine.engine in ("fbgemm", "x86")))
            elif kind is dt.float16:
                made = self.graph.call_method("to", (source, kind))
            else:
                place, (scale, zero_point) = self._place(node), observer.calculate_qparams()
                if observer.qscheme.name.startswith("per_channel"):
                    numbers = self._number(place + "_scale_", scale), self._number(place + "_zero_point_", zero_point)
                    made = self.graph.call_function(torch.quantize_per_channel, (source, *numbers, int(observer.ch_axis), kind))
                else:
                    numbers = self._number(place + "_scale_", float(scale)), self._number(place + "_zero_point_", int(zero_point))
                    made = self.graph.call_function(torch.quantize_per_tensor, (source, *numbers, kind))
            back = self.graph.call_method("dequantize", (made,))
        node.replace_all_uses_with(back)
        self.graph.erase_node(node)

    def back(self, node: Node) -> None:
        """Let readers of a quantized result have floats."""
        with self.graph.inserting_after(node):
            made = self.graph.call_method("dequantize", (node,))
        for user in list(node.users):
            if user is not made:
                user.replace_input_with(node, made)

    # -- modules ---------------------------------------------------------------------------------------------------------

    def layer(self, node: Node) -> None:
        """A layer as one that rounds its weight."""
        module = self.modules[node.target]
        qconfig, observer = module.qconfig, None
        if type(module) in ops.TRAINED:
            observer, module = module.weight_fake_quant, module.to_float()
            self.model.set_submodule(node.target, module)
        if qconfig is None or self._unwanted(node) or node.name not in self.state.observed:
            return
        made_by = qconfig.weight() if observer is None else observer
        inner = module[0] if isinstance(module, _FusedModule) else module
        if made_by.dtype not in (dt.qint8, dt.float16) or type(inner) not in _FORMS:
            return
        if observer is None:
            made_by.to(inner.weight.device)
        made_by(inner.weight)
        form = _FORMS[type(inner)].from_float(inner, qparams_of(made_by))
        if isinstance(module, _FusedModule):
            module[0] = form
        else:
            self.model.set_submodule(node.target, form)

    def special(self, node: Node) -> None:
        """A module of the user's, whose quantized form takes and gives quantized tensors."""
        module = self.modules[node.target]
        self.custom_nodes.add(node)
        before = node.args[0]
        if isinstance(before, Node) and before.op == "call_method" and before.target == "dequantize":
            node.replace_input_with(before, before.args[0])
            if not before.users:
                self.graph.erase_node(before)
        module.activation_post_process = next(self.modules[u.target] for u in node.users if u.op == "call_module" and is_observer(self.modules[u.target]))
        self.modules[node.target] = made = self.custom[type(module)].from_observed(module)
        self.model.set_submodule(node.target, made)

    def run(self) -> None:
        """All nodes, as they come."""
        self.observe_weights()
        inputs = 0
        for node in list(self.graph.nodes):
            if node.op == "placeholder":
                if inputs in self.state.custom.input_quantized_indexes:
                    self.back(node)
                inputs += 1
            elif node.op == "output":
                self._keep(node)
            elif node.op == "call_module":
                module = self.modules[node.target]
                if is_observer(module):
                    if node.args[0] in self.custom_nodes:
                        of = node.args[0]
                        node.replace_all_uses_with(of)
                        self.graph.erase_node(node)
                        self.back(of)
                    else:
                        self.step(node)
                elif type(module) in ops.WEIGHTED:
                    self.layer(node)
                elif type(module) in self.custom:
                    self.special(node)

    def _keep(self, output: Node) -> None:
        result, indices = output.args[0], self.state.custom.output_quantized_indexes
        chosen = [result[i] for i in indices] if isinstance(result, (list, tuple)) else [result] if 0 in indices else []
        while chosen:
            x = chosen.pop()
            if isinstance(x, Node) and x.op == "call_method" and x.target == "dequantize":
                output.replace_input_with(x, x.args[0])
            elif isinstance(x, (list, tuple, dict)):
                chosen += x.values() if isinstance(x, dict) else x


def convert(model: GraphModule, is_reference: bool, custom: ConvertCustomConfig, remove_qconfig: bool, mapping: QConfigMapping | None) -> GraphModule:
    """The quantized graph, in floats between steps to integers and back (`is_reference`), or of quantized layers and functions.
    AssertionError for a model that was not prepared."""
    state = model.meta.get("_observed_graph_module_attrs") if isinstance(model, GraphModule) else None
    if state is None:
        raise AssertionError("incoming model must be produced by prepare_fx")
    modules = dict(model.named_modules(remove_duplicate=False))
    if is_reference and any(n.name in state.observed and ops.kind_of(n, modules) in ops.RECURRENT for n in model.graph.nodes):
        raise RuntimeError("convert_to_reference_fx of recurrent layers is not supported yet by torchlike")
    converter = _Converter(model, state, custom, mapping)
    converter.run()
    model.graph.eliminate_dead_code()
    made = GraphModule(model, model.graph)
    if not is_reference:
        made = lower(made, converter.qconfigs, state.scopes)
    if remove_qconfig:
        for module in made.modules():
            if hasattr(module, "qconfig"):
                del module.qconfig
    made.delete_all_unused_submodules()
    made.meta.pop("_observed_graph_module_attrs", None)
    return made
