"""torch.return_types: the named tuples that functions with several results return."""
from __future__ import annotations

from collections import namedtuple

RETURN_TYPES: dict[str, type] = {}


def named_result(name: str, *fields: str) -> type:
    """The type torch.return_types.<name>: made of its fields, or, as torch makes one, of one sequence of them."""
    def new(cls, *given):
        if len(given) != len(fields):
            given = _one_sequence(name, len(fields), given)
        return tuple.__new__(cls, given)

    def show(self):
        return f"torch.return_types.{name}(\n" + ",\n".join(f"{f}={x!r}" for f, x in zip(fields, self)) + ")"
    made = type(name, (namedtuple(name, fields),), {"__module__": "torch.return_types", "__slots__": (), "__new__": new, "__repr__": show})
    RETURN_TYPES[name] = made
    return made


def _one_sequence(name: str, n: int, given: tuple) -> tuple:
    try:
        sequence, = given
        found = tuple(sequence)
    except (TypeError, ValueError):
        raise TypeError("constructor requires a sequence") from None
    if len(found) != n:
        raise TypeError(f"torch.return_types.{name}() takes a {n}-sequence ({len(found)}-sequence given)")
    return found
