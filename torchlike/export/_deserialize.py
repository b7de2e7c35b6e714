"""An ExportedProgram from the JSON of a .pt2 archive."""
from __future__ import annotations

import ast
import math
import operator
from typing import Any

from .. import ops
from .._core.device import device
from .._ops import aten
from .._symbolic import SymInt, sym_max, sym_min
from ..fx import Graph, GraphModule, Node
from ..ops import memory_formats
from ..utils import _pytree as pytree
from ._build import Val
from ._constraints import ValueRanges
from ._serialize import DTYPES, FORMATS
from ._shapes import Expr, made, symbol
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

_OPERATORS = frozenset("add sub mul floordiv mod truediv neg pow ge le gt lt eq ne and_ or_ not_ pos getitem".split())
_FUNCTIONS = {"torch.sym_max": sym_max, "torch.sym_min": sym_min, "math.trunc": math.trunc, "math.ceil": math.ceil, "math.floor": math.floor}
_NUMBERS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_OUTPUTS = {"buffer_mutation": (OutputKind.BUFFER_MUTATION, "buffer_name"), "parameter_mutation": (OutputKind.PARAMETER_MUTATION, "parameter_name"),
            "user_input_mutation": (OutputKind.USER_INPUT_MUTATION, "user_input_name")}


class Deserializer:
    """`name`: the file's, for errors."""

    def __init__(self, model: dict, name: str) -> None:
        self.model, self.name = model, name
        self.data = model["graph_module"]["graph"]
        self.graph = Graph()
        self.nodes: dict[str, Node] = {}
        self.dtypes = {n: d for d, n in DTYPES.items()}

    def wrong(self, what: str) -> RuntimeError:
        """What cannot be loaded."""
        return RuntimeError(f"{self.name}: {what}")

    def program(self, state: dict, constants: dict, examples: tuple | None) -> ExportedProgram:
        """The ExportedProgram."""
        module = self.model["graph_module"]
        inputs = [self._input_spec(*_only(s)) for s in module["signature"]["input_specs"]]
        for spec in inputs:
            node = self.nodes[spec.arg.name] = self.graph.placeholder(spec.arg.name)
            node.meta["val"] = spec.arg.value if isinstance(spec.arg, ConstantArgument) else self._val(spec.arg.name)
        for data in self.data["nodes"]:
            self._node(data)
        self.graph.output(tuple(self._argument(a) for a in self.data["outputs"]))
        outputs = [self._output_spec(*_only(s)) for s in module["signature"]["output_specs"]]
        calls = [ModuleCallEntry(e["fqn"], self._signature(e["signature"])) for e in module["module_call_graph"]]
        from ._export import SymbolKey
        limits = {SymbolKey(k): ValueRanges(-math.inf if r["min_val"] is None else r["min_val"], math.inf if r["max_val"] is None else r["max_val"])
                  for k, r in self.model["range_constraints"].items()}
        for spec in inputs:
            if spec.target is not None and spec.target not in state and spec.target not in constants:
                raise self.wrong(f"there is no tensor for {spec.target}")
        graph_module = GraphModule({}, self.graph)
        return ExportedProgram(graph_module, self.graph, ExportGraphSignature(inputs, outputs), state, limits, calls, examples, constants)

    def _signature(self, data: dict | None) -> ModuleCallSignature | None:
        if data is None:
            return None
        try:
            specs = [pytree.treespec_loads(data[k]) for k in ("in_spec", "out_spec")]
        except (NotImplementedError, ValueError) as e:
            raise self.wrong(f"the structure of arguments or results cannot be read: {e}") from None
        return ModuleCallSignature([], [], *specs, data.get("forward_arg_names"))

    def _input_spec(self, kind: str, data: dict) -> InputSpec:
        if kind == "user_input":
            what, arg = _only(data["arg"])
            if what == "as_tensor":
                return InputSpec(InputKind.USER_INPUT, TensorArgument(arg["name"]), None)
            raise self.wrong(f"an input of kind {what} is not supported")
        if kind == "constant_input":
            return InputSpec(InputKind.USER_INPUT, ConstantArgument(data["name"], self._argument(data["value"])), None)
        if kind == "parameter":
            return InputSpec(InputKind.PARAMETER, TensorArgument(data["arg"]["name"]), data["parameter_name"])
        if kind == "buffer":
            return InputSpec(InputKind.BUFFER, TensorArgument(data["arg"]["name"]), data["buffer_name"], data["persistent"])
        if kind == "tensor_constant":
            return InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(data["arg"]["name"]), data["tensor_constant_name"])
        raise self.wrong(f"an input that is a {kind} is not supported")

    def _output_spec(self, kind: str, data: dict) -> OutputSpec:
        if kind in _OUTPUTS:
            kind, name = _OUTPUTS[kind]
            return OutputSpec(kind, TensorArgument(data["arg"]["name"]), data[name])
        if kind != "user_output":
            raise self.wrong(f"an output that is a {kind} is not supported")
        what, arg = _only(data["arg"])
        if what == "as_tensor":
            return OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(arg["name"]), None)
        if what == "as_sym_int" and "as_name" in arg:
            return OutputSpec(OutputKind.USER_OUTPUT, SymIntArgument(arg["as_name"]), None)
        return OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", self._argument(data["arg"])), None)

    # -- nodes ----------------------------------------------------------------------------------------------------------------------

    def _target(self, name: str) -> Any:
        first, _, rest = name.partition(".")
        if first == "_operator" and rest in _OPERATORS:
            return getattr(operator, rest)
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        parts = name.split(".")
        if parts[:2] == ["torch", "ops"] and len(parts) == 5 and parts[2] != "torchlike":
            _, _, namespace, op, overload = parts
            try:
                return getattr(getattr(aten if namespace == "aten" else getattr(ops, namespace), op), overload)
            except AttributeError:
                pass
        raise self.wrong(f"the operator {name} is not supported by torchlike")

    def _node(self, data: dict) -> None:
        target = self._target(data["target"])
        args = tuple(self._argument(i["arg"]) for i in data["inputs"] if i.get("kind", 1) != 2)
        kwargs = {i["name"]: self._argument(i["arg"]) for i in data["inputs"] if i.get("kind", 1) == 2}
        outputs = data["outputs"]
        several = len(outputs) > 1 or (outputs and "as_tensors" in outputs[0])
        single = None if several or not outputs else self._name(outputs[0])
        node = self.graph.call_function(target, args, kwargs, name=data.get("name") or single or "call")
        where = self._where(data["metadata"])
        node.meta.update(where)
        if not several:
            if single is not None:
                self._made(node, single, outputs[0])
            return
        parts = outputs[0]["as_tensors"] if "as_tensors" in outputs[0] else [o.get("as_tensor") for o in outputs]
        node.meta["val"] = []
        for k, part in enumerate(parts):
            if part is not None:
                item = self.graph.call_function(operator.getitem, (node, k), name=part["name"])
                item.meta.update(where)
                self._made(item, part["name"], {"as_tensor": part})
                node.meta["val"].append(item.meta["val"])

    def _where(self, metadata: dict) -> dict[str, Any]:
        """What a node's meta says of the place of its call."""
        found: dict[str, Any] = {"stack_trace": metadata["stack_trace"]} if metadata.get("stack_trace") else {}
        if metadata.get("nn_module_stack"):
            entries = [entry.split(",", 2) for entry in metadata["nn_module_stack"].split(";")]
            if any(len(entry) < 3 for entry in entries):
                raise self.wrong(f"an nn_module_stack is {metadata['nn_module_stack']!r}")
            found["nn_module_stack"] = {key: (path, kind) for key, path, kind in entries}
        return found

    def _name(self, output: dict) -> str | None:
        kind, data = _only(output)
        return data["name"] if kind == "as_tensor" else data["as_name"] if kind in ("as_sym_int", "as_sym_bool", "as_sym_float") else None

    def _made(self, node: Node, name: str, output: dict) -> None:
        self.nodes[name] = node
        kind = _only(output)[0]
        if kind == "as_tensor":
            node.meta["val"] = self._val(name)
        elif kind == "as_sym_int":
            n = self._size(self.data["sym_int_values"][name])
            node.meta["val"] = n

    def _val(self, name: str) -> Val:
        meta = self.data["tensor_values"][name]
        return Val(tuple(self._size(n) for n in meta["sizes"]), self.dtypes[meta["dtype"]], self._device(meta["device"]),
                   tuple(self._size(n) for n in meta["strides"]), meta["requires_grad"])

    def _device(self, data: dict) -> device:
        return device(data["type"] if data.get("index") is None else f"{data['type']}:{data['index']}")

    def _size(self, data: dict) -> Any:
        kind, value = _only(data)
        if kind == "as_int":
            return value
        hint = (value.get("hint") or {}).get("as_int", 0)
        found = _expression(value["expr_str"], hint)
        return SymInt(found) if isinstance(found, Expr) else found

    def _argument(self, arg: dict) -> Any:
        kind, x = _only(arg)
        if kind == "as_none":
            return None
        if kind in ("as_int", "as_ints", "as_bool", "as_bools", "as_string", "as_strings", "as_int_lists"):
            return x
        if kind == "as_float":
            return _NUMBERS.get(x, x) if isinstance(x, str) else float(x)
        if kind == "as_floats":
            return [_NUMBERS[y] if isinstance(y, str) else float(y) for y in x]
        if kind == "as_tensor":
            return self.nodes[x["name"]]
        if kind == "as_tensors":
            return [self.nodes[y["name"]] for y in x]
        if kind == "as_optional_tensors":
            return [None if "as_none" in y else self.nodes[y["as_tensor"]["name"]] for y in x]
        if kind == "as_optional_tensor":
            return None if "as_none" in x else self.nodes[x["as_tensor"]["name"]]
        if kind in ("as_sym_int", "as_sym_bool", "as_sym_float"):
            return self.nodes[x["as_name"]] if "as_name" in x else _only(x)[1]
        if kind in ("as_sym_ints", "as_sym_bools", "as_sym_floats"):
            return [self.nodes[y["as_name"]] if "as_name" in y else _only(y)[1] for y in x]
        if kind == "as_scalar_type":
            return self.dtypes[x]
        if kind == "as_device":
            return self._device(x)
        if kind == "as_memory_format":
            return getattr(memory_formats, next(name for name, n in FORMATS.items() if n == x))
        if kind == "as_layout" and x == 7:
            from .. import strided
            return strided
        if kind == "as_complex":
            return complex(x["real"], x["imag"])
        raise self.wrong(f"an argument of kind {kind} is not supported")


def _only(union: dict) -> tuple[str, Any]:
    """The one entry of a union."""
    (kind, value), = union.items()
    return kind, value


def _expression(text: str, hint: int) -> Any:
    """A size from its text, `Mul(Integer(2), Symbol('s77', positive=True, integer=True))`; what is in no known form is a symbol of that text."""
    try:
        return _expr(ast.parse(text, mode="eval").body, hint)
    except (ValueError, SyntaxError, RecursionError):
        return symbol(text, hint)


def _expr(node: ast.expr, hint: int) -> Any:
    if isinstance(node, ast.Name):
        return symbol(node.id, hint)
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_expr(node.operand, hint)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise ValueError
    name = node.func.id
    if name == "Symbol":
        return symbol(ast.literal_eval(node.args[0]), hint)
    if name == "Integer":
        return int(ast.literal_eval(node.args[0]))
    args = [_expr(a, hint) for a in node.args]
    op = {"Mul": "mul", "Add": "add", "FloorDiv": "floordiv"}.get(name)
    if op is None or not args:
        raise ValueError
    args.sort(key=lambda a: isinstance(a, int)) if op != "floordiv" else None
    total = args[0]
    for a in args[1:]:
        total = made(op, total, a)
    return total
