"""Observers in a graph: behind what is quantized, and before it where its inputs come as floats."""
from __future__ import annotations

import copy
import dataclasses
import operator
import warnings
from typing import Any

from ...._core import dtype as dt
from ...._core.history import outside
from ....fx.graph_module import GraphModule
from ....fx.node import Node
from ....nn import functional
from ....nn.modules.activation import ReLU
from ....nn.modules.conv import Conv1d
from ....nn.modules.linear import Linear
from ....nn.modules.module import Module
from ...nn import intrinsic, qat
from ..fake_quantize import FixedQParamsFakeQuantize
from ..observer import FixedQParamsObserver, PlaceholderObserver
from ..qconfig import default_reuse_input_qconfig, qconfig_equals
from ..qconfig_mapping import FIXED, QConfigMapping
from ..quantization_mappings import get_default_qat_module_mappings
from ..quantize import convert, propagate_qconfig_
from . import _operations as ops
from ._configuring import configurations, follow_fusion, is_observer, new_name
from .custom_config import PrepareCustomConfig

_INTEGERS = (dt.quint8, dt.qint8, dt.qint32, dt.float16)
_floats = PlaceholderObserver.with_args(dtype=dt.float32)
_quantized = PlaceholderObserver.with_args(dtype=dt.quint8)
QAT = get_default_qat_module_mappings() | {Conv1d: qat.Conv1d, intrinsic.ConvReLU1d: intrinsic.qat.ConvReLU1d}


@dataclasses.dataclass
class Prepared:
    """What convert must know of an observed graph."""

    qconfigs: dict[str, Any]
    scopes: dict[str, Any]
    custom: PrepareCustomConfig
    mapping: QConfigMapping
    is_qat: bool
    observed: set[str]


@dataclasses.dataclass
class _Target:
    """What makes the observers of a node's inputs and of its results; None where they are no tensors."""

    input: Any = _floats
    output: Any = _floats
    weight: Any = None
    bias: Any = _floats
    share: bool = False  # results have the observer of the first input
    reuse: bool = False  # the same where there is one, else none


class _Match:
    """An operation and ReLU behind it: the first node reads, the last one is observed."""

    def __init__(self, first: Node, last: Node, kind: Any) -> None:
        self.first, self.last, self.kind, self.nodes = first, last, kind, [last] if first is last else [last, first]


class _Observers:
    def __init__(self, model: GraphModule, qconfigs: dict[str, Any], custom: PrepareCustomConfig) -> None:
        self.model, self.qconfigs, self.custom = model, qconfigs, custom
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.plain: dict[Node, bool] = {}
        self.known: dict[int, tuple] = {}
        self.targets: dict[Node, _Target] = {}
        self.observed: set[str] = set()
        self.swapped: set[str] = set()
        self.custom_classes = {float_: observed for table in custom.float_to_observed_mapping.values() for float_, observed in table.items()}
        self.device = next((p.device for p in model.parameters()), None)
        self.matches = self._find()

    # -- what is there ---------------------------------------------------------------------------------------------------

    def _kind(self, node: Any) -> Any:
        return ops.kind_of(node, self.modules)

    def _find(self) -> dict[Node, _Match]:
        found: dict[Node, _Match] = {}
        for node in reversed(self.model.graph.nodes):
            if node in found or node.op not in ("call_module", "call_function", "call_method"):
                continue
            kind, first = self._kind(node), node
            before = node.args[0] if len(node.args) == 1 else None
            if kind in ops.RELUS and isinstance(before, Node) and len(before.users) == 1 and before not in found:
                of = self._kind(before)
                if of in ops.SUMS or ((of in ops.PRODUCTS or of in ops.LAYERS) and kind in (ReLU, functional.relu)):
                    first, kind = before, of
            if ops.quantizable(kind) or kind in self.custom_classes:
                match = _Match(first, node, kind)
                found.update(dict.fromkeys(match.nodes, match))
        return found

    def no_tensors(self, x: Any) -> bool:
        """Whether a node's arguments are numbers for certain."""
        if not isinstance(x, Node):
            return True
        if x not in self.plain:
            self.plain[x] = self._no_tensors(x)
        return self.plain[x]

    def _no_tensors(self, x: Node) -> bool:
        if x.op == "call_module":
            return is_observer(self.modules[x.target]) and self.no_tensors(x.args[0])
        if x.op in ("placeholder", "get_attr"):
            return False
        if x.target is operator.getitem:
            return self.no_tensors(x.args[0])
        if (x.target is getattr and x.args[1] in ("ndim", "shape")) or (x.op == "call_method" and x.target == "size"):
            return True
        return all(all(self.no_tensors(e) for e in arg) if isinstance(arg, list) else isinstance(arg, int) or (isinstance(arg, Node) and self.no_tensors(arg))
                   for arg in x.args)

    def _type(self, maker: Any) -> tuple:
        """The dtype that an observer stands for, and whether scales are found anew each time."""
        if maker is None:
            return None, False
        if id(maker) not in self.known:
            made = maker()
            self.known[id(maker)] = (made.dtype, bool(getattr(made, "is_dynamic", False)), maker)
        return self.known[id(maker)][:2]

    # -- what is wanted --------------------------------------------------------------------------------------------------

    def _target(self, node: Node, qconfig: Any, match: _Match | None) -> _Target:
        if self.no_tensors_of(node):
            return _Target(None, None, None, None)
        if qconfig is None:
            return _Target()
        share = match is not None and (match.kind in ops.SHARED or (match.kind in ops.SUMS and sum(not self.no_tensors(a) for a in match.first.args) == 1))
        return _Target(qconfig.activation, qconfig.activation, qconfig.weight, _floats, share, qconfig_equals(qconfig, default_reuse_input_qconfig))

    def no_tensors_of(self, node: Node) -> bool:
        return node.op != "output" and self.no_tensors(node)

    def aim(self) -> None:
        """Say for each node what its inputs and results shall be; floats where that is not supported."""
        graph = self.model.graph
        for node in graph.nodes:
            self.targets[node] = _Target()
        for node, match in self.matches.items():
            if self.qconfigs[node.name] is not None:
                self.targets[node] = self._target(node, self.qconfigs[node.name], match)
        for n, node in enumerate(x for x in graph.nodes if x.op == "placeholder"):
            if n in self.custom.input_quantized_indexes:
                self.targets[node] = _Target(_quantized, _quantized)
        for node in graph.nodes:
            if node.op.startswith("call") and self.no_tensors(node):
                self.targets[node] = _Target(None, None, None, None)
            elif node.op == "output" and 0 in self.custom.output_quantized_indexes:
                self.targets[node] = _Target(_quantized, _quantized)
        for node in graph.nodes:
            for arg in ops.plain_arguments(node):
                self._never(arg)
        for match in {id(m): m for m in self.matches.values()}.values():
            qconfig = self.qconfigs[match.last.name]
            if qconfig is not None and not self.supported(match, qconfig):
                for node in match.nodes:
                    self.targets[node] = _Target(None, None, None, None) if self.no_tensors(node) else _Target()

    def _never(self, node: Node) -> None:
        target = self.targets[node]
        target.input = target.output = None
        if node in self.matches and self.matches[node].kind in ops.SHARED and node.args and isinstance(node.args[0], Node):
            self._never(node.args[0])

    def supported(self, match: _Match, qconfig: Any) -> bool:
        """Whether there is a quantized form for what a configuration wants of an operation."""
        if match.kind in self.custom_classes:
            return True
        if match.kind in FIXED and not _knows(qconfig, FIXED[match.kind]):
            warnings.warn(f"QConfig must specify a FixedQParamsObserver or a FixedQParamsFakeQuantize for fixed qparams ops, ignoring {qconfig}.\n"
                          "Please use torch.ao.quantization.get_default_qconfig_mapping or torch.ao.quantization.get_default_qat_qconfig_mapping",
                          stacklevel=outside())
            return False
        first, output = self.targets[match.first], self._type(self.targets[match.last].output)
        arguments = [(ops.place_of(match.first, a), a) for arg in (*match.first.args, *match.first.kwargs.values())
                     for a in (arg if isinstance(arg, (list, tuple)) else [arg]) if isinstance(a, Node)]
        inputs = {self._type(first.input) for place, _ in arguments if place == "activation"}
        weights = {self._type(first.weight)[0] for place, _ in arguments if place == "weight"}
        if match.kind not in ops.RECURRENT and inputs <= {(dt.quint8, False)} and output == (dt.quint8, False):
            return match.kind not in ops.PRODUCTS or weights <= {dt.qint8}
        linear = match.kind in ops.RECURRENT or match.kind in (Linear, qat.Linear, intrinsic.LinearReLU, intrinsic.qat.LinearReLU, functional.linear)
        return linear and output[1] and any(inputs <= {(kind, True)} and weights <= {weight}
                                            for kind, weight in ((dt.quint8, dt.qint8), (dt.float16, dt.float16)))

    # -- what is put in --------------------------------------------------------------------------------------------------

    def insert(self) -> None:
        """Put the observers in, node by node as the graph was."""
        for node in list(self.model.graph.nodes):
            if node.op == "output":
                node.args = tuple(map(self._before_output, node.args))
                continue
            match = self.matches.get(node)
            qconfig = self.qconfigs.get(node.name)
            if match is None or qconfig is None or not self.supported(match, qconfig):
                continue
            self.observed.update(n.name for n in match.nodes)
            if node is match.first:
                node.args = tuple(self._before(node, a) for a in node.args)
                node.kwargs = {k: self._before(node, a) for k, a in node.kwargs.items()}
            if node is match.last:
                self._behind(node, match, qconfig)

    def _put(self, node: Node, observer: Module) -> Node:
        name = new_name(self.model, "activation_post_process_")
        if self.device is not None:
            observer.to(self.device)
        setattr(self.model, name, observer)
        self.modules[name] = observer
        with self.model.graph.inserting_after(node):
            return self.model.graph.create_node("call_module", name, (node,), {})

    def _is_observation(self, node: Any) -> bool:
        return isinstance(node, Node) and node.op == "call_module" and is_observer(self.modules[node.target])

    def _given(self, arg: Node) -> tuple:
        """What an argument is, observed or not."""
        of = arg.args[0] if self._is_observation(arg) else arg
        return self._type(self.targets[of].output)

    def _before(self, node: Node, arg: Any) -> Any:
        """The argument, observed where it is not yet what the node wants."""
        if isinstance(arg, (list, tuple)):
            return type(arg)(self._before(node, a) for a in arg)
        if not isinstance(arg, Node):
            return arg
        place, target = ops.place_of(node, arg), self.targets[node]
        maker = {"activation": target.input, "bias": target.bias, "weight": None if node.target in ops.NORMS else target.weight}[place]
        kind, dynamic = self._type(maker)
        given = self._given(arg)[0]
        if dynamic:
            needed = bool(node.args) and arg is node.args[0]
        else:
            needed = not target.reuse and kind in _INTEGERS and given in (*_INTEGERS, dt.float32) and kind != given
        if not needed:
            return arg
        made = maker()
        for user in arg.users:
            if self._is_observation(user) and type(self.modules[user.target]) is type(made) and self.modules[user.target].dtype == made.dtype:
                return user
        return self._put(arg, made)

    def _behind(self, node: Node, match: _Match, qconfig: Any) -> None:
        target = self.targets[node]
        kind, dynamic = self._type(target.output)
        if dynamic or kind not in _INTEGERS:
            return
        observation = self._put(node, target.output())
        for user in list(node.users):
            if user is not observation:
                user.replace_input_with(node, observation)
        comes_quantized = bool(node.args) and isinstance(node.args[0], Node) and node.args[0].op == "placeholder" and kind is dt.quint8
        if (target.share and not comes_quantized) or target.reuse:
            if not self._share(node):
                observation.replace_all_uses_with(node)
                self.model.graph.erase_node(observation)
        if match.kind in self.custom_classes and node.target not in self.swapped:
            self.swapped.add(node.target)
            self.model.set_submodule(node.target, self.custom_classes[match.kind].from_float(self.modules[node.target]))

    def _observation_before(self, node: Any) -> Node | None:
        while not self._is_observation(node):
            if not isinstance(node, Node) or node.op == "placeholder":
                return None
            node = next((a for a in node.args if isinstance(a, Node)), node.args[-1] if node.args else None)
        return node

    def _share(self, node: Node) -> bool:
        """Let all inputs and the result have the first input's observer; False where it has none."""
        first = next((a for a in node.args if isinstance(a, (Node, list, tuple))), None)
        several = list(first) if isinstance(first, (list, tuple)) else [first]
        observation = self._observation_before(several[0]) if several else None
        if observation is None:
            return False
        observer = self.modules[observation.target]
        for other in several[1:]:
            while not self._is_observation(other):
                if not other.args:
                    return False
                other = other.args[0]
            self._replace(other.target, observer)
        for user in node.users:
            self._replace(user.target, observer)
        return True

    def _replace(self, name: str, observer: Module) -> None:
        self.model.set_submodule(name, observer)
        self.modules[name] = observer

    def _before_output(self, x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(map(self._before_output, x))
        if isinstance(x, dict):
            return {k: self._before_output(e) for k, e in x.items()}
        maker = self.targets[x].input if isinstance(x, Node) and x in self.targets else None
        kind = self._type(maker)[0]
        return self._put(x, maker()) if kind not in (None, dt.float32) and kind != self._given(x)[0] else x


def _knows(qconfig: Any, observer: Any) -> bool:
    """Whether a configuration has the scale that an operation's results have."""
    made, wanted = qconfig.activation(), observer()
    if isinstance(made, FixedQParamsFakeQuantize):
        made = made.activation_post_process
    return isinstance(made, FixedQParamsObserver) and float(made.scale) == float(wanted.scale) and int(made.zero_point) == int(wanted.zero_point)


def _flat(mapping: QConfigMapping) -> dict[Any, Any]:
    return {"": mapping.global_qconfig, **mapping.object_type_qconfigs, **mapping.module_name_qconfigs}


def prepare(model: GraphModule, mapping: QConfigMapping, is_qat: bool, scopes: dict[str, Any], custom: PrepareCustomConfig) -> GraphModule:
    """The graph with observers; layers that round their weights in the place of float ones, for training."""
    mapping = copy.deepcopy(mapping)
    follow_fusion(model, mapping)
    propagate_qconfig_(model, _flat(mapping), custom.to_dict())
    if is_qat:
        convert(model, QAT, inplace=True, remove_qconfig=False)
        kinds = mapping.object_type_qconfigs
        kinds.update({QAT[k]: q for k, q in list(kinds.items()) if k in QAT})
    qconfigs = configurations(model.graph, dict(model.named_modules(remove_duplicate=False)), mapping, scopes)
    observers = _Observers(model, qconfigs, custom)
    observers.aim()
    observers.insert()
    made = GraphModule(model, model.graph)
    made.meta["_observed_graph_module_attrs"] = Prepared(qconfigs, scopes, custom, mapping, is_qat, observers.observed)
    return made
