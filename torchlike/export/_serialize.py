"""An ExportedProgram as the JSON of PyTorch's .pt2 archives (version 8 of that format)."""
from __future__ import annotations

import math
import operator
import re
from typing import Any

from .._aten_schemas import schema_of
from .._core import dtype as dt
from .._core.device import device
from .._core.dtype import dtype
from .._custom_operator import CustomOverload
from .._ops import OpOverload
from .._symbolic import SymInt
from ..fx import Node
from ..utils import _pytree as pytree
from .graph_signature import ConstantArgument, InputKind, InputSpec, OutputSpec

SCHEMA_VERSION = (8, 20)
DTYPES = {dt.uint8: 1, dt.int8: 2, dt.int16: 3, dt.int32: 4, dt.int64: 5, dt.float16: 6, dt.float32: 7, dt.float64: 8, dt.complex64: 10, dt.complex128: 11,
          dt.bool_: 12, dt.bfloat16: 13, dt.uint16: 28, dt.float8_e4m3fn: 29, dt.float8_e5m2: 30, dt.uint32: 34, dt.uint64: 35}
LAYOUTS = {"torch.strided": 7}
FORMATS = {"contiguous_format": 1, "channels_last": 2, "channels_last_3d": 3, "preserve_format": 4}
_OUTPUTS = {"BUFFER_MUTATION": ("buffer_mutation", "buffer_name"), "PARAMETER_MUTATION": ("parameter_mutation", "parameter_name"),
            "USER_INPUT_MUTATION": ("user_input_mutation", "user_input_name")}


def serialized(ep: Any, opset_version: dict[str, int] | None) -> dict:
    """The whole model.json."""
    limits = {str(k): {"min_val": _limit(v.lower), "max_val": _limit(v.upper)} for k, v in ep.range_constraints.items()}
    return {"graph_module": {"graph": _Graph(ep).written(), "signature": _signature(ep.graph_signature), "module_call_graph": _calls(ep), "metadata": {},
                             "treespec_namedtuple_fields": {}},
            "opset_version": opset_version or {"aten": 10}, "range_constraints": limits, "schema_version": {"major": SCHEMA_VERSION[0], "minor": SCHEMA_VERSION[1]},
            "verifiers": ["TRAINING"], "torch_version": "2.13.0", "guards_code": []}


def _limit(n: float) -> int | None:
    return None if math.isinf(n) else int(n)


def _calls(ep: Any) -> list[dict]:
    found = []
    for entry in ep.module_call_graph:
        s = entry.signature
        found.append({"fqn": entry.fqn, "signature": None if s is None else
                      {"inputs": [], "outputs": [], "in_spec": pytree.treespec_dumps(s.in_spec), "out_spec": pytree.treespec_dumps(s.out_spec),
                       "forward_arg_names": s.forward_arg_names}})
    return found


def _constant(x: Any) -> dict:
    kind = {type(None): "as_none", bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}.get(type(x))
    if kind is None:
        raise RuntimeError(f"torch.export.save does not write a {type(x).__name__} among arguments or results")
    return {kind: True if x is None else _number(x)}


def _number(x: Any) -> Any:
    """JSON has no infinities."""
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    return x


def _signature(signature: Any) -> dict:
    return {"input_specs": [_input(s) for s in signature.input_specs], "output_specs": [_output(s) for s in signature.output_specs]}


def _input(spec: InputSpec) -> dict:
    arg = {"name": spec.arg.name}
    if isinstance(spec.arg, ConstantArgument):
        return {"constant_input": {"name": spec.arg.name, "value": _constant(spec.arg.value)}}
    if spec.kind is InputKind.PARAMETER:
        return {"parameter": {"arg": arg, "parameter_name": spec.target}}
    if spec.kind is InputKind.BUFFER:
        return {"buffer": {"arg": arg, "buffer_name": spec.target, "persistent": bool(spec.persistent)}}
    if spec.kind is InputKind.CONSTANT_TENSOR:
        return {"tensor_constant": {"arg": arg, "tensor_constant_name": spec.target}}
    return {"user_input": {"arg": {"as_tensor": arg}}}


def _output(spec: OutputSpec) -> dict:
    if spec.kind.name in _OUTPUTS:
        kind, name = _OUTPUTS[spec.kind.name]
        return {kind: {"arg": {"name": spec.arg.name}, name: spec.target}}
    if isinstance(spec.arg, ConstantArgument):
        return {"user_output": {"arg": _constant(spec.arg.value)}}
    kind = "as_tensor" if type(spec.arg).__name__ == "TensorArgument" else "as_sym_int"
    return {"user_output": {"arg": {kind: {"name": spec.arg.name} if kind == "as_tensor" else {"as_name": spec.arg.name}}}}


def _metadata(node: Node) -> dict[str, str]:
    """Where a call was made; classes by PyTorch's names."""
    found = {"stack_trace": node.stack_trace} if node.stack_trace else {}
    modules = [",".join((key, path, re.sub(r"^torchlike\.", "torch.", kind))) for key, (path, kind) in node.meta.get("nn_module_stack", {}).items()]
    return found | ({"nn_module_stack": ";".join(modules)} if modules else {})


class _Graph:
    """The graph part."""

    def __init__(self, ep: Any) -> None:
        self.ep, self.tensors, self.sizes = ep, {}, {}
        self.params = {s.arg.name: s.target for s in ep.graph_signature.input_specs if s.kind is not InputKind.USER_INPUT}

    def written(self) -> dict:
        """The JSON."""
        inputs, nodes, outputs = [], [], []
        for node in self.ep.graph.nodes:
            val = node.meta.get("val")
            if node.op == "placeholder":
                inputs.append(self.value(node) if hasattr(val, "dtype") else _constant(val))
            elif node.op == "output":
                outputs = [self.argument(x) for x in node.args[0]]
            elif node.target is not operator.getitem:
                nodes.append(self.node(node))
        return {"inputs": inputs, "outputs": outputs, "nodes": nodes, "tensor_values": self.tensors, "sym_int_values": self.sizes, "sym_bool_values": {},
                "is_single_tensor_return": False, "custom_obj_values": {}, "sym_float_values": {}}

    def node(self, node: Node) -> dict:
        """A call and what it returns."""
        target = node.target
        if isinstance(target, CustomOverload):
            name, parameters = f"torch.ops.{target}", target.definition._parameters.arguments
            names, only = [a.name for a in parameters], {a.name: a.kind for a in parameters}
        elif isinstance(target, OpOverload):
            schema = schema_of(target)
            if schema is None:
                raise RuntimeError(f"torch.export.save: {target} is an operator of torchlike's own, which PyTorch's files have no name for")
            name, names = f"torch.ops.{target}", [a.name for a in schema.arguments]
            only = {a.name: a.kind for a in schema.arguments}
        else:
            name, names, only = f"_operator.{target.__name__}", ["a", "b"], {}
        inputs = [{"name": n, "arg": self.argument(x, only.get(n, "")), "kind": 1} for n, x in zip(names, node.args)]
        inputs += [{"name": n, "arg": self.argument(x, only.get(n, "")), "kind": 2} for n, x in node.kwargs.items()]
        return {"target": name, "inputs": inputs, "outputs": self.results(node), "metadata": _metadata(node), "is_hop_single_tensor_return": None,
                "name": node.name}

    def results(self, node: Node) -> list[dict]:
        """What a call returns, by the names of the nodes that take it apart."""
        val = node.meta.get("val")
        if not isinstance(val, list):
            return [] if val is None else [self.value(node)]
        parts = [{"name": self.value(user)["as_tensor"]["name"]} for user in node.users if user.target is operator.getitem]
        schema = schema_of(node.target) if isinstance(node.target, OpOverload) else None
        return [{"as_tensors": parts}] if schema is not None and schema.lists else [{"as_tensor": p} for p in parts]

    def value(self, node: Node) -> dict:
        """A node's value, whose kind is noted."""
        val = node.meta["val"]
        if isinstance(val, SymInt):
            self.sizes[node.name] = self.size(val)
            return {"as_sym_int": {"as_name": node.name}}
        self.tensors[node.name] = {"dtype": DTYPES[val.dtype], "sizes": [self.size(n) for n in val.shape], "requires_grad": val.requires_grad,
                                   "device": self.device(val.device), "strides": [self.size(n) for n in val.stride()], "storage_offset": {"as_int": 0},
                                   "layout": LAYOUTS["torch.strided"]}
        return {"as_tensor": {"name": node.name}}

    def size(self, n: Any) -> dict:
        """A number or an expression."""
        return {"as_expr": {"expr_str": n.node.sympy(), "hint": {"as_int": n.node.hint}}} if isinstance(n, SymInt) else {"as_int": int(n)}

    def device(self, d: device) -> dict:
        """Kind and number."""
        return {"type": d.type, "index": d.index}

    def argument(self, x: Any, kind: str = "") -> dict:
        """An argument as its kind is written."""
        if isinstance(x, Node):
            return {"as_sym_int": {"as_name": x.name}} if isinstance(x.meta.get("val"), SymInt) else {"as_tensor": {"name": x.name}}
        if isinstance(x, dtype):
            return {"as_scalar_type": DTYPES[x]}
        if isinstance(x, device):
            return {"as_device": self.device(x)}
        if isinstance(x, (list, tuple)):
            return self.list_of(list(x), kind)
        name = getattr(x, "name", None)
        if type(x).__name__ == "memory_format":
            return {"as_memory_format": FORMATS[name]}
        if type(x).__name__ == "layout":
            return {"as_layout": LAYOUTS[str(x)]}
        if isinstance(x, complex):
            return {"as_complex": {"real": x.real, "imag": x.imag}}
        if kind.startswith("float") and isinstance(x, int) and not isinstance(x, bool):
            x = float(x)
        return _constant(x)

    def list_of(self, xs: list, kind: str) -> dict:
        """A list by the kind of what is in it."""
        nodes = [x for x in xs if isinstance(x, Node)]
        if any(isinstance(x.meta.get("val"), SymInt) for x in nodes):
            return {"as_sym_ints": [{"as_name": x.name} if isinstance(x, Node) else {"as_int": x} for x in xs]}
        if nodes and (len(nodes) < len(xs) or kind.startswith("Tensor?[")):
            return {"as_optional_tensors": [{"as_none": True} if x is None else {"as_tensor": {"name": x.name}} for x in xs]}
        if nodes or kind.startswith("Tensor["):
            return {"as_tensors": [{"name": x.name} for x in xs]}
        if any(isinstance(x, float) for x in xs) or kind.startswith("float["):
            return {"as_floats": [_number(float(x)) for x in xs]}
        if xs and all(isinstance(x, bool) for x in xs):
            return {"as_bools": xs}
        if xs and all(isinstance(x, str) for x in xs):
            return {"as_strings": xs}
        return {"as_ints": [int(x) for x in xs]}
