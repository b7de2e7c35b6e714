"""`torch._dynamo.exc`: what is wrong with a program that shall become a graph."""
from __future__ import annotations

import enum


class TorchDynamoException(RuntimeError):
    """What every such error is."""


class InvalidBackend(TorchDynamoException):
    """A name of no back end."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


class UserErrorType(enum.Enum):
    """What the user can do about it."""

    DYNAMIC_CONTROL_FLOW = enum.auto()
    ANTI_PATTERN = enum.auto()
    STANDARD_LIBRARY = enum.auto()
    CONSTRAINT_VIOLATION = enum.auto()
    DYNAMIC_DIM = enum.auto()
    INVALID_INPUT = enum.auto()
    INVALID_OUTPUT = enum.auto()
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = enum.auto()


class UserError(TorchDynamoException):
    """A mistake in how something was called, or a program that cannot become a graph."""

    def __init__(self, error_type: UserErrorType, msg: str, case_name: str | None = None) -> None:
        super().__init__(msg)
        self.error_type, self.message = error_type, msg
