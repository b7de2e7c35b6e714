"""How a compiled function is called."""
from __future__ import annotations

from typing import Any, NamedTuple

from . import schemas
from .types import FLOAT, INT, NONE, Type, fits, is_optional, without_none
from .values import float_text, literal


class Parameter(NamedTuple):
    """One of a function's; `default` is its text, None where it must be given."""

    name: str
    type: Type
    default: str | None
    only_named: bool
    broadcast: int  # how many of a number make the list that it stands for as well; 0 where it does not


class Signature(NamedTuple):
    """How a compiled function is called."""

    name: str
    parameters: list[Parameter]
    returns: Type


def default_text(x: Any, t: Type, broadcast: int = 0) -> str | None:
    """A default as one of type t; None where it is none."""
    inner = without_none(t)
    if broadcast and not isinstance(x, (list, tuple)):
        x = [x] * broadcast
    if inner == FLOAT and isinstance(x, int) and not isinstance(x, bool):
        return float_text(float(x))
    if isinstance(x, (list, tuple)) and inner.name == "List":
        words = [default_text(y, inner.args[0]) for y in x]
        return None if None in words else f"[{', '.join(words)}]" if words else f"annotate({inner}, [])"
    if isinstance(x, dict) and inner.name == "Dict" and not x:
        return f"annotate({inner}, {{}})"
    made = literal(x)
    return made.text if made is not None and (fits(made.type, t) or inner == INT and made.type == INT) else None


def bound(at: Any, node: Any, signature: Signature, args: list[Any], named: dict[str, Any], whole: bool = False) -> str:
    """The arguments of a call of a compiled function, as its text takes them; with `whole` defaults too."""
    words, given = [], dict(named)
    positional = [p for p in signature.parameters if not p.only_named]
    if len(args) > len(positional):
        raise at.source.error(node, f"{signature.name.rpartition('.')[2]}() expected at most {len(positional)} argument(s) but received {len(args)} argument(s)")
    skipped = False
    for i, p in enumerate(signature.parameters):
        if i < len(args) and not p.only_named:
            made = args[i]
            if p.name in given:
                raise at.source.error(node, f"argument {p.name} is given twice")
        elif p.name in given:
            made = given.pop(p.name)
        elif p.default is None:
            raise at.source.error(node, f"{signature.name.rpartition('.')[2]}() is missing value for argument '{p.name}'")
        elif whole:
            words.append(p.default)
            continue
        else:
            skipped = True
            continue
        v = at.first_class(made, node)
        if v.type == NONE and is_optional(p.type):
            word = v.text
        else:
            try:
                inner = without_none(p.type)
                one = p.broadcast and inner.name == "List" and v.type == inner.args[0] and (p.broadcast == 1 or "(" not in v.text)
                word = f"[{', '.join([v.text] * p.broadcast)}]" if one else schemas.converted(v, p.type)
            except schemas.Mismatch as reason:
                raise at.source.error(node, f"{signature.name.rpartition('.')[2]}() {reason} for argument '{p.name}'") from None
        words.append(f"{p.name}={word}" if skipped or p.only_named else word)
    if given:
        raise at.source.error(node, f"Unknown keyword argument '{next(iter(given))}' for operator '{signature.name.rpartition('.')[2]}'")
    return ", ".join(words)
