"""`torch.jit._get_trace_graph`: what a module does with example inputs, as a graph of operators as PyTorch's tracer writes it down."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .._aten_schemas import schema_of
from .._core.device import device
from .._core.dtype import dtype
from .._exporting import state as exporting
from .._schemas import _REQUIRED
from .._tensor import Tensor
from ..export._trace import Call, Ref, Trace, held
from ..nn.modules.module import Module
from ..ops.creation import scalar_tensor
from ._graph import Graph, Scopes, Type, Value
from ._operators import _number
from .trace import _tracing

_LIST = Type("ListType")
_CONVOLUTIONS = {f"aten::conv{t}{d}d": (bool(t), d) for t in ("", "_transpose") for d in (1, 2, 3)}


def get_trace_graph(f: Callable, args: Any = (), kwargs: Mapping[str, Any] | None = None, strict: bool = True, _force_outplace: bool = False,
                    return_inputs: bool = False, _return_inputs_states: bool = False) -> tuple:
    """(graph, results) of f(*args, **kwargs): f's operations, for programs that count them.

    The graph's inputs are the arguments' tensors and what f's state_dict has. Sizes are constants in it. The results require no gradient; what f
    writes into its buffers is undone, as are random numbers that it draws. NotImplementedError for `_force_outplace` and the inputs returned.
    """
    if return_inputs or _return_inputs_states or _force_outplace:
        raise NotImplementedError("torch.jit._get_trace_graph: return_inputs, _return_inputs_states and _force_outplace are not supported")
    args, kwargs = args if isinstance(args, tuple) else (args,), dict(kwargs or {})
    state = list(f.state_dict(keep_vars=True).values()) if isinstance(f, Module) else []
    given = list({id(t): t for t in [*held(Tensor, (args, kwargs)), *state]}.values())
    scopes = Scopes()
    trace = Trace(given, scopes, traced=True)
    before, exporting.scopes = exporting.scopes, scopes
    try:
        with _tracing():
            out = trace.run(lambda: f(*args, **kwargs), state)
    finally:
        exporting.scopes = before
    return _Builder(trace, len(given)).built(out), out


class _Builder:
    """A graph of what was traced."""

    def __init__(self, trace: Trace, given: int) -> None:
        self.trace = trace
        self.values = {n: Value._of(str(n), Type("TensorType", trace.tensors[n])) for n in range(given)}
        self.graph = Graph._of(list(self.values.values()))
        self.scope = ""

    def built(self, out: Any) -> Graph:
        """The graph, with the run's results."""
        constants = dict(self.trace.constants)
        for call in self.trace.calls:
            self.scope = "/".join(call.where[1])
            first = call.args[0].number if call.args and isinstance(call.args[0], Ref) else None
            if first in constants and call.target._opname == "lift_fresh_copy":
                self.values[call.outs[0]] = self._constant(Type("TensorType", self.trace.tensors[first]), constants[first])
            else:
                self._node(call)
        self.scope = ""
        results = [self._value(self.trace.refs(t)) for t in held(Tensor, out)]
        if not isinstance(out, Tensor):
            results = self.graph._add("prim::TupleConstruct", "", results, [Type("TupleType")])
        self.graph._outputs = results
        return self.graph

    def _node(self, call: Call) -> None:
        kind, given = call.target.name().partition(".")[0], _arguments(call)
        if kind in _CONVOLUTIONS:
            kind, given = _convolution(given, *_CONVOLUTIONS[kind])
        inputs = [self._value(x, wanted) for x, wanted in given]
        types = [Type("NoneType") if n is None else Type("TensorType", self.trace.tensors[n]) for n in call.outs]
        found = schema_of(call.target)
        if found is not None and found.lists:
            inputs, kind = self.graph._add(kind, self.scope, inputs, [_LIST]), "prim::ListUnpack"
        for n, value in zip(call.outs, self.graph._add(kind, self.scope, inputs, types)):
            if n is not None:
                self.values[n] = value

    def _value(self, x: Any, wanted: str = "") -> Value:
        """What an argument is in the graph; a number where a tensor is wanted is a tensor."""
        if isinstance(x, Ref):
            return self.values[x.number]
        if isinstance(x, (tuple, list)):
            return self.graph._add("prim::ListConstruct", self.scope, [self._value(y, wanted.partition("[")[0]) for y in x], [_LIST])[0]
        if wanted.rstrip("?") == "Tensor" and isinstance(x, (bool, int, float, complex)):
            made = scalar_tensor(x)
            return self._constant(Type("TensorType", ((), made.dtype, made.device, (), False)), made)
        return self._constant(*_constant_type(x))

    def _constant(self, kind: Type, x: Any) -> Value:
        return self.graph._add("prim::Constant", self.scope, (), [kind], x)[0]


def _arguments(call: Call) -> list[tuple[Any, str]]:
    """All that an operator takes, defaults included, and as what."""
    found = schema_of(call.target)
    if found is None:
        return [(x, "") for x in (*call.args, *call.kwargs.values())]
    given = []
    for i, a in enumerate(found.arguments):
        x = call.args[i] if i < len(call.args) else call.kwargs.get(a.name, found._default(a))
        size = re.search(r"\[(\d+)\]", a.kind)
        if size and isinstance(x, (tuple, list)) and len(x) == 1:
            x = [*x] * int(size[1])  # one number for all dimensions
        given.append((None if x is _REQUIRED else x, a.kind))
    return given


def _convolution(given: list[tuple[Any, str]], transposed: bool, dims: int) -> tuple[str, list[tuple[Any, str]]]:
    """The operator under all convolutions, with its switches for cuDNN, and its arguments."""
    x, w, b, stride, padding, *rest = (a for a, _ in given)
    if isinstance(padding, str):
        return "aten::_convolution_mode", given
    added, groups, dilation = rest if transposed else ([0] * dims, rest[1], rest[0])
    return "aten::_convolution", [(a, "") for a in (x, w, b, stride, padding, dilation, transposed, added, groups, False, False, True, True)]


def _constant_type(x: Any) -> tuple[Type, Any]:
    """The type of a constant that is no tensor, and as which value TorchScript has it."""
    if isinstance(x, dtype):
        return Type("IntType"), _number(x)
    kinds = {bool: "BoolType", int: "IntType", float: "FloatType", complex: "ComplexType", str: "StringType", type(None): "NoneType", device: "DeviceObjType"}
    return Type(kinds.get(type(x), "AnyType")), x
