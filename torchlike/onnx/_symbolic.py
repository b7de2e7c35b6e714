"""How a program's own operations are exported: functions that build ONNX nodes, by the operation's name and ONNX's opset."""
from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor import Tensor
from .errors import OnnxExporterError

REGISTERED: dict[str, dict[int, Callable]] = {}


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers for kinds of elements (TensorProto.DataType)."""

    UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64 = range(8)
    STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16 = range(8, 17)


class TrainingMode(enum.IntEnum):
    """Which mode a model is exported in."""

    EVAL, PRESERVE, TRAINING = range(3)


class OperatorExportTypes(enum.IntEnum):
    """What is done with operations that ONNX does not have."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """`symbolic_fn(g, *arguments)` exports the operation `namespace::name` from this opset on."""
    if "::" not in symbolic_name:
        raise ValueError(f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name")
    REGISTERED.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back what `register_custom_op_symbolic` registered."""
    REGISTERED.get(symbolic_name, {}).pop(opset_version, None)


class GraphContext:
    """What such a function builds its nodes with: `g.op("Conv", x, w, group_i=1)`."""

    def __init__(self, graph: Any) -> None:
        self.graph, self.opset = graph, graph.opset

    def op(self, opname: str, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
        """A node. An attribute's kind is what its name ends with: `_i`, `_f`, `_s`, `_t`; `domain::name` is a node of another domain."""
        domain, _, kind = opname.rpartition("::")
        attributes = {name[:-2]: _attribute(x) for name, x in kwargs.items()}
        if domain in ("onnx", "ai.onnx"):
            domain = ""
        if domain:
            self.graph.domains.setdefault(domain, 1)
        if kind == "Constant":
            return self.graph.const(np.asarray(attributes["value"]))
        return self.graph.op(kind, *raw_args, n=outputs, domain=domain, **attributes)


def _attribute(x: Any) -> Any:
    return x.numpy(force=True) if isinstance(x, Tensor) else x


def symbolic(graph: Any, versions: dict[int, Callable], args: tuple) -> Any:
    """What the function registered for the graph's opset, or for the newest before it, makes of an operation's arguments."""
    fitting = [v for v in versions if v <= graph.opset]
    return versions[max(fitting or versions)](GraphContext(graph), *args)


def parsed(kinds: tuple[str, ...], args: tuple) -> list:
    """Arguments as the values or constants that they were declared as."""
    return [_parsed(x, kind) for x, kind in zip(args, kinds)] + list(args[len(kinds):])


def _parsed(x: Any, kind: str) -> Any:
    if kind in ("v", "none") or x is None:
        return x
    if hasattr(x, "known"):
        if not x.constant:
            raise OnnxExporterError(f"an argument that was declared as a constant ({kind!r}) is a value of the graph")
        x = x.value.tolist() if kind != "t" else x.value
    return {"i": int, "f": float, "b": bool, "s": str, "is": list, "fs": list, "t": np.asarray}[kind](x)
