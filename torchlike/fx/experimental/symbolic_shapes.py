"""Questions about sizes that may be unknown. Sizes are numbers here, so each has its answer: no symbol is in them, and nothing is guarded."""
from __future__ import annotations

from typing import Any

from ..._symbolic import SymBool, SymFloat, SymInt  # noqa: F401


class GuardOnDataDependentSymNode(RuntimeError):
    """A branch on a number that only data could tell."""

    def __init__(self, cond: Any, *args: Any) -> None:
        super().__init__(*args)
        self.cond = cond


def _checked(a: Any, kind: type | tuple[type, ...], expected: str, exact: bool = False) -> Any:
    if not isinstance(a, kind) or (exact and isinstance(a, bool)):
        raise AssertionError(f"Expected {expected}, got {type(a)}")
    return a


def free_symbols(val: Any) -> set:
    """The unknown sizes in numbers, tensors or collections of them: none."""
    return set()


def free_unbacked_symbols(x: Any) -> set:
    """The sizes that data decide: none."""
    return set()


def has_free_symbols(val: Any) -> bool:
    """Whether an unknown size is in it: no."""
    return False


def guard_or_false(a: bool) -> bool:
    """a, which is known."""
    return _checked(a, bool, "bool")


def guard_or_true(a: bool) -> bool:
    """a, which is known."""
    return _checked(a, bool, "bool")


def statically_known_true(x: bool) -> bool:
    """Whether x holds, whatever the unknown sizes are."""
    return _checked(x, bool, "bool")


def statically_known_false(x: bool) -> bool:
    """Whether x fails, whatever the unknown sizes are."""
    return not _checked(x, bool, "bool")


def guard_int(a: int) -> int:
    """a, an integer."""
    if not isinstance(a, int) or isinstance(a, bool):
        raise AssertionError(f"Expected int, got {a}")
    return a


def guard_float(a: float) -> float:
    """a, a float."""
    if not isinstance(a, float):
        raise AssertionError(f"Expected float, got {a}")
    return a


def guard_scalar(a: bool | int | float) -> bool | int | float:
    """a, a number."""
    if not isinstance(a, (bool, int, float)):
        raise AssertionError(f"unrecognized scalar {a}")
    return a


def optimization_hint(a: int, fallback: int | None = None) -> int:
    """A likely value of a: its own."""
    return _checked(a, int, "int", exact=True)


def guarding_hint_or_throw(a: int | bool) -> int | bool:
    """a's value."""
    return _checked(a, int, "int")


def is_concrete_int(a: int) -> bool:
    """Whether a is known."""
    _checked(a, int, "SymInt or int")
    return True


def is_concrete_bool(a: bool) -> bool:
    """Whether a is known."""
    _checked(a, bool, "SymBool or bool")
    return True


def is_nested_int(s: Any) -> bool:
    """Whether s stands for the many lengths of a jagged dimension: sizes here are numbers."""
    return False


def sym_eq(x: Any, y: Any) -> bool:
    """Whether numbers are equal, or sequences of them."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    if isinstance(x, int) and isinstance(y, int):
        return x == y
    raise AssertionError(f"unexpected sym_eq between {type(x)} {type(y)}")
