"""Errors that torch has classes of its own for."""
from __future__ import annotations


class OutOfMemoryError(RuntimeError):
    """A device has no room for a result."""

    __module__ = "torch"


class AcceleratorError(RuntimeError):
    """A device reported a failure."""

    __module__ = "torch"


def of_device(error: Exception) -> Exception:
    """torch's error for one of XLA's runtime errors."""
    text = str(error)
    return OutOfMemoryError(text) if text.startswith("RESOURCE_EXHAUSTED") else error
