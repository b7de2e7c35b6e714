"""torch.SymInt and its kin: PyTorch's unknown sizes. Sizes are plain numbers here, so nothing is ever an instance of these classes, and
the functions that take either kind compute with Python's numbers."""
from __future__ import annotations

import builtins
import math
from collections.abc import Iterable
from typing import Any

from ._core.shown import Shown


class _Symbol(metaclass=Shown):
    """A number that only tracing with unknown sizes could make."""

    def __init__(self, node) -> None:
        self.node = node

    def __repr__(self) -> str:
        return str(self.node)


class SymInt(_Symbol):
    """An unknown integer."""


class SymFloat(_Symbol):
    """An unknown float."""


class SymBool(_Symbol):
    """An unknown truth value."""


for _class in (SymInt, SymFloat, SymBool):
    _class.__module__ = "torch"


def sym_int(a) -> int:
    """a without its fraction."""
    return math.trunc(a)


def sym_float(a) -> float:
    """a as a float."""
    return builtins.float(a)


def _like_both(chosen, a, b):
    return builtins.float(chosen) if isinstance(a, builtins.float) or isinstance(b, builtins.float) else chosen


def sym_max(a: float, b: float) -> Any:
    """The larger number; a float if one of them is."""
    return _like_both(max(a, b), a, b)


def sym_min(a: float, b: float) -> Any:
    """The smaller number; a float if one of them is."""
    return _like_both(min(a, b), a, b)


def sym_not(a) -> bool:
    """not a."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """t if b else f; both of one type."""
    if type(t) is not type(f):
        raise AssertionError(f"Expected t and f to have the same type, got {type(t)} and {type(f)}")
    return t if b else f


def sym_sum(args: Iterable) -> Any:
    """The sum of numbers."""
    return builtins.sum(args)


def sym_sqrt(a) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_fresh_size(expr) -> None:
    """PyTorch refuses as well outside of tracing."""
    raise AssertionError("sym_fresh_size is only usable within tracing")
