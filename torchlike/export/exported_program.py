"""ExportedProgram: a graph, what its inputs and outputs are, and the tensors it takes from the module."""
from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from .._tensor import Tensor
from ..fx import Graph, GraphModule
from ..nn import Module, Parameter
from ..utils import _pytree as pytree
from . import _unlift
from .graph_signature import (  # noqa: F401  (names of this module, too)
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module is called: the structures of its arguments and results."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    forward_arg_names: list[str] | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    """A module by its name in the exported one ("" is that itself)."""

    fqn: str
    signature: ModuleCallSignature | None = None


class CallSpec(NamedTuple):
    """The structures of a program's arguments and results."""

    in_spec: pytree.TreeSpec | None
    out_spec: pytree.TreeSpec | None


class ExportedProgram:
    """What `torch.export.export` makes of a module. `module()` is a module that runs the graph."""

    def __init__(self, root: Module | dict[str, Any], graph: Graph, graph_signature: ExportGraphSignature, state_dict: dict[str, Tensor | Parameter],
                 range_constraints: dict[Any, Any], module_call_graph: list[ModuleCallEntry],
                 example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None, constants: dict[str, Tensor] | None = None, *,
                 verifiers: list[type] | None = None) -> None:
        self._graph_module = root if isinstance(root, GraphModule) and root.graph is graph else GraphModule(root, graph)
        self._graph_signature, self._state_dict, self._range_constraints = graph_signature, state_dict, range_constraints
        self._module_call_graph, self._example_inputs, self._constants = module_call_graph, example_inputs, constants or {}
        self._guards_code: list[str] = []

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module, whose inputs are everything that it takes."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What its inputs and outputs are."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and persistent buffers."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Other tensors that the graph takes."""
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """Other tensors that the graph takes."""
        return self._constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """Between which limits each dynamic dimension is."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """How the module is called."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments that the program was exported with."""
        return self._example_inputs

    @property
    def call_spec(self) -> CallSpec:
        """The structures of arguments and results."""
        signature = self._module_call_graph[0].signature
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def dialect(self) -> str:
        """Which operators a graph has: all that a module calls."""
        return "TRAINING"

    def parameters(self) -> Iterator[Parameter]:
        """The module's parameters."""
        for _, x in self.named_parameters():
            yield x

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Their names and they."""
        for name in self._graph_signature.parameters:
            yield name, self._state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        """The module's buffers."""
        for _, x in self.named_buffers():
            yield x

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Their names and they."""
        hidden = set(self._graph_signature.non_persistent_buffers)
        for name in self._graph_signature.buffers:
            yield name, (self._constants if name in hidden else self._state_dict)[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module with the parameters and buffers as its own, called as the original."""
        return _unlift.unlifted(self, check_guards)

    def validate(self) -> None:
        """Check that the graph is well-formed."""
        self.graph.lint()

    def __deepcopy__(self, memo: dict) -> ExportedProgram:
        graph = copy.deepcopy(self.graph)
        return ExportedProgram({}, graph, copy.deepcopy(self._graph_signature), dict(self._state_dict), dict(self._range_constraints),
                               copy.deepcopy(self._module_call_graph), self._example_inputs, dict(self._constants))

    def __str__(self) -> str:
        code = self._graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self._graph_signature).replace("\n", "\n    ")
        return f"ExportedProgram:\n    {code}\nGraph signature: {signature}\nRange constraints: {self._range_constraints}\n"
