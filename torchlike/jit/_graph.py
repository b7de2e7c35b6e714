"""What a traced run is to programs that count operations (fvcore): torch._C.Graph, its nodes and their values."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._core.device import device
from .._core.dtype import dtype
from .._core.layout import contiguous_strides


class Made:
    """A type of TorchScript's whose objects programs cannot make, as in torch; libraries ask whether something is one."""

    def __new__(cls):
        raise TypeError(f"torch._C.{cls.__name__}: No constructor defined!")


class Type:
    """What kind of value it is, and of a tensor its sizes."""

    def __init__(self, kind: str, tensor: tuple | None = None) -> None:
        """tensor: (shape, dtype, device, strides, requires_grad), where that is known."""
        self._kind, self._tensor = kind, tensor

    def kind(self) -> str:
        """Its name in PyTorch: TensorType, IntType, ListType, ..."""
        return self._kind

    def sizes(self) -> list[int] | None:
        """A tensor's."""
        return None if self._tensor is None else list(self._tensor[0])

    def strides(self) -> list[int] | None:
        """A tensor's."""
        if self._tensor is None:
            return None
        return list(contiguous_strides(self._tensor[0]) if self._tensor[3] is None else self._tensor[3])

    def dim(self) -> int | None:
        """How many dimensions a tensor has."""
        return None if self._tensor is None else len(self._tensor[0])

    def dtype(self) -> dtype | None:
        """Of a tensor's elements."""
        return None if self._tensor is None else self._tensor[1]

    def device(self) -> device | None:
        """Where a tensor is."""
        return None if self._tensor is None else self._tensor[2]


class Value(Made):
    """One of a graph: an input, a constant, or what a node makes."""

    __module__ = "torch"

    _node: Node
    _type: Type
    _name: str
    _constant: Any

    @staticmethod
    def _of(name: str, kind: Type, constant: Any = None) -> Value:
        made = object.__new__(Value)
        made._name, made._type, made._constant = name, kind, constant
        return made

    def debugName(self) -> str:
        """Its name in the graph."""
        return self._name

    def node(self) -> Node:
        """Which makes it."""
        return self._node

    def type(self) -> Type:
        """What kind of value it is."""
        return self._type

    def isCompleteTensor(self) -> bool:
        """Whether it is a tensor of known sizes."""
        return self._type._tensor is not None

    def requires_grad(self) -> bool:
        """Whether it is a tensor that did."""
        return self._type._tensor is not None and bool(self._type._tensor[4])

    def toIValue(self) -> Any:
        """A constant as Python has it, else None."""
        return self._constant


class Node(Made):
    """One operation: an operator's, or what lies between such (`prim::Constant`, `prim::ListConstruct`)."""

    __module__ = "torch"

    @staticmethod
    def _of(kind: str, scope: str, inputs: Sequence[Value], outputs: Sequence[Value]) -> Node:
        made = object.__new__(Node)
        made._kind, made._scope, made._inputs, made._outputs = kind, scope, list(inputs), list(outputs)
        for value in outputs:
            value._node = made
        return made

    def kind(self) -> str:
        """The operator's name: aten::relu."""
        return self._kind

    def scopeName(self) -> str:
        """The scopes in which it was recorded, joined by "/"."""
        return self._scope

    def inputs(self) -> Iterator[Value]:
        """What it reads: all arguments of the operator."""
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        """What it makes."""
        return iter(self._outputs)

    def inputsSize(self) -> int:
        """How many values it reads."""
        return len(self._inputs)

    def outputsSize(self) -> int:
        """How many values it makes."""
        return len(self._outputs)

    def input(self) -> Value:
        """The only one."""
        return _only(self._inputs)

    def output(self) -> Value:
        """The only one."""
        return _only(self._outputs)


class Graph(Made):
    """Operations in their order."""

    __module__ = "torch"

    @staticmethod
    def _of(inputs: list[Value]) -> Graph:
        made = object.__new__(Graph)
        made._nodes, made._outputs, made._last = [], [], 0
        made._inputs = Node._of("prim::Param", "", (), inputs)
        return made

    def nodes(self) -> Iterator[Node]:
        """Its operations."""
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        """Of the run: its arguments' tensors, then the module's parameters and buffers."""
        return self._inputs.outputs()

    def outputs(self) -> Iterator[Value]:
        """What the run returned."""
        return iter(self._outputs)

    def _add(self, kind: str, scope: str, inputs: Sequence[Value], types: Sequence[Type], constant: Any = None) -> list[Value]:
        outs = []
        for t in types:
            outs.append(Value._of(str(self._inputs.outputsSize() + self._last), t, constant))
            self._last += 1
        self._nodes.append(Node._of(kind, scope, inputs, outs))
        return outs


class Scopes:
    """torch._C._get_tracing_state() while a graph is made: the scopes that a program's hooks push and pop. Takes the place of a trace's ModuleStack."""

    def __init__(self) -> None:
        self.entries: tuple[str, ...] = ()

    def push_scope(self, name: str) -> None:
        """What is recorded from here on is within `name`."""
        self.entries = (*self.entries, name)

    def pop_scope(self) -> None:
        """Ends the innermost scope."""
        self.entries = self.entries[:-1]

    def __enter__(self) -> Scopes:
        return self

    def __exit__(self, *exc: object) -> None:
        self.entries = ()


def _only(values: list[Value]) -> Value:
    if len(values) != 1:
        raise RuntimeError(f"the node has {len(values)} values there, not one")
    return values[0]
