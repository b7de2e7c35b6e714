"""How a program's own operations are exported: functions that build ONNX nodes, by the operation's name and ONNX's opset."""
from __future__ import annotations

import enum
from collections.abc import Callable

REGISTERED: dict[str, dict[int, Callable]] = {}


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers for kinds of elements (TensorProto.DataType)."""

    UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64 = range(8)
    STRING, BOOL, FLOAT16, DOUBLE, UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16 = range(8, 17)


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """`symbolic_fn(g, *arguments)` exports the operation `namespace::name` from this opset on."""
    if "::" not in symbolic_name:
        raise ValueError(f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name")
    REGISTERED.setdefault(symbolic_name, {})[opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back what `register_custom_op_symbolic` registered."""
    REGISTERED.get(symbolic_name, {}).pop(opset_version, None)
