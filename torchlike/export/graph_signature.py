"""What the inputs and outputs of an exported graph are."""
from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by its node's name."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size."""

    name: str


@dataclasses.dataclass
class ConstantArgument:
    """What is no tensor and always the same."""

    name: str
    value: int | float | bool | str | None


ArgumentSpec = TensorArgument | SymIntArgument | ConstantArgument


class InputKind(enum.Enum):
    """Where an input comes from."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """What becomes of an output."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


def _shown(spec: InputSpec | OutputSpec) -> str:
    kept = "" if getattr(spec, "persistent", None) is None else f" persistent={spec.persistent}"
    name = "" if isinstance(spec, OutputSpec) and isinstance(spec.arg, ConstantArgument) else spec.arg.name
    return f"{name}: {spec.kind.name}" + ("" if spec.target is None else f" target='{spec.target}'") + kept


@dataclasses.dataclass
class InputSpec:
    """One input; `target` is the parameter's, buffer's or constant's name."""

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        return _shown(self)


@dataclasses.dataclass
class OutputSpec:
    """One output; `target` is the name of what it is the new value of."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self) -> str:
        return _shown(self)


@dataclasses.dataclass
class ExportGraphSignature:
    """All of a graph's inputs and outputs, in their order."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _inputs(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind}

    def _outputs(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of parameters, as the module has them."""
        return tuple(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of buffers, as the module has them."""
        return tuple(self.inputs_to_buffers.values())

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Those that a state_dict does not have."""
        return tuple([s.target for s in self.input_specs if s.kind is InputKind.BUFFER and s.persistent is False])

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Names of tensors that are neither."""
        return tuple(self.inputs_to_lifted_tensor_constants.values())

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """Names of objects: none."""
        return tuple(self._inputs(InputKind.CUSTOM_OBJ).values())

    @property
    def user_inputs(self) -> tuple[int | float | bool | str | None, ...]:
        """Names of the tensors among the user's arguments, and the other arguments themselves."""
        return tuple([s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name for s in self.input_specs if s.kind is InputKind.USER_INPUT])

    @property
    def user_outputs(self) -> tuple[int | float | bool | str | None, ...]:
        """Names of the tensors that the user gets, and the other results themselves."""
        return tuple([s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name for s in self.output_specs
                      if s.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)])

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """The module's names by the graph's."""
        return self._inputs(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """The module's names by the graph's."""
        return self._inputs(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """The constants' names by the graph's."""
        return self._inputs(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """The objects' names by the graph's: none."""
        return self._inputs(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """Outputs that are buffers' new values."""
        return self._outputs(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """Outputs that are parameters' new values."""
        return self._outputs(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """Outputs that are user inputs' new values."""
        return self._outputs(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> Any:
        """Graphs here have no backward."""
        return None

    @property
    def assertion_dep_token(self) -> Any:
        """Graphs here have no tokens."""
        return None

    def __str__(self) -> str:
        return "\n".join(["", "# inputs", *map(str, self.input_specs), "", "# outputs", *map(str, self.output_specs), ""])
