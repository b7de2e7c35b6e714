"""torch.return_types: the named tuples that functions with several results return."""
from __future__ import annotations

import sys
from collections import namedtuple

from .._core.shown import Shown

RETURN_TYPES: dict[str, type] = {}


def named_result(name: str, *fields: str, out: bool = True) -> type:
    """The type torch.return_types.<name>: made of its fields, or, as torch makes one, of one sequence of them.

    Its attribute `into_out` is <name>_out, the type of what a call with `out=` returns."""
    def new(cls, *given):
        if len(given) != len(fields):
            given = _one_sequence(cls.__name__, len(fields), given)
        return tuple.__new__(cls, given)

    def show(self):
        return f"torch.return_types.{type(self).__name__}(\n" + ",\n".join(f"{f}={x!r}" for f, x in zip(fields, self)) + ")"
    counts = {"n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0}  # Python's own named results written in C have these
    made = Shown(name, (namedtuple(name, fields),),
                {"__module__": "torch.return_types", "__slots__": (), "__new__": new, "__repr__": show, "__reduce__": _reduced, **counts})
    RETURN_TYPES[name] = made
    if out:
        made.into_out = RETURN_TYPES[f"{name}_out"] = Shown(f"{name}_out", (made,), {"__module__": "torch.return_types", "__slots__": ()})
    return made


def _reduced(result: tuple) -> tuple:
    """By the type's name, where `torch` is torchlike; another torch may have one of this name."""
    cls = type(result)
    found = getattr(sys.modules.get(cls.__module__), cls.__name__, None)
    return (cls, tuple(result)) if found is cls else (_made_again, (cls.__name__, *result))


def _made_again(name: str, *values) -> tuple:
    return RETURN_TYPES[name](*values)


def _one_sequence(name: str, n: int, given: tuple) -> tuple:
    try:
        sequence, = given
        found = tuple(sequence)
    except (TypeError, ValueError):
        raise TypeError("constructor requires a sequence") from None
    if len(found) != n:
        raise TypeError(f"torch.return_types.{name}() takes a {n}-sequence ({len(found)}-sequence given)")
    return found
