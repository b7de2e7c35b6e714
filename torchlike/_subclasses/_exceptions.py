"""Why an operator has no result without data."""
from __future__ import annotations

from typing import Any


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor of a kind that has no fake one."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _OfOperator(RuntimeError):
    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.func = func


class DynamicOutputShapeException(_OfOperator):
    """The data of an operator's arguments decide how large its result is."""


class DataDependentOutputException(_OfOperator):
    """An operator's result is a number of Python's, which the data of its arguments decide."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """An operator's arguments are on several devices."""
