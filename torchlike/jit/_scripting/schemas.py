"""The operators of TorchScript: which of their schemas takes a call, what it returns, and how the call is written.

As in PyTorch, schemas are tried in their order, first without and then with conversions of a tensor to a number.
"""
from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import NamedTuple

from ..._aten_schemas import _lines as _aten_lines
from .types import ANY, BOOL, DEVICE, FLOAT, INT, NONE, NUMBER, TENSOR, Type, fits, listed, optional, paired
from .values import Value, float_text, tuple_of

_NAMES = {"SymInt": INT, "Scalar": NUMBER, "ScalarType": INT, "MemoryFormat": INT, "Layout": INT, "SymFloat": FLOAT, "SymBool": BOOL}
_BY_NAME = frozenset(("ScalarType", "MemoryFormat", "Layout"))  # numbers in the text that the reader tells apart by their argument's name
_ALIASES = {"input": "self", "axis": "dim", "keepdims": "keepdim"}
_FREE = re.compile(r"t\d?|tVal")


class Parameter(NamedTuple):
    """One of an operator's; `count` is n of `int[n]`, which takes a number as well."""

    name: str
    type: Type
    count: int
    default: str | None
    only_named: bool
    by_name: bool


class Schema(NamedTuple):
    """One overload; what it returns has several types, or none, or one."""

    parameters: tuple[Parameter, ...]
    returns: Type
    any_number: bool  # format(str self, ...)


def _type(text: str) -> tuple[Type, int]:
    """A type of a schema, and n of `int[n]`."""
    text = text.strip()
    if text.endswith("?"):
        inner, count = _type(text[:-1])
        return optional(inner), count
    array = re.search(r"\[(\d*)\]$", text)
    if array:
        return listed(_type(text[:array.start()])[0]), int(array[1] or 0)
    if text.startswith("Dict("):
        return Type("Dict", tuple(_type(x)[0] for x in _parts(text[5:-1]))), 0
    if text.startswith("("):
        parts = [_type(x.strip().rpartition(" ")[0] if re.fullmatch(r"Tensor\w*(\[\])? \w+", x.strip()) else x)[0] for x in _parts(text[1:-1])]
        fields = tuple(x.split()[1] for x in _parts(text[1:-1]) if re.fullmatch(r"Tensor \w+", x.strip()))
        if len(parts) == 1:
            return parts[0], 0
        return paired(parts, fields if len(fields) == len(parts) else ()), 0
    return _NAMES.get(text, ANY if text == "Any" else Type(text)), 0


def _parts(text: str) -> list[str]:
    found, depth, last, quoted = [], 0, 0, False
    for i, c in enumerate(text):
        quoted ^= c == '"'
        depth += (c in "([") - (c in ")]")
        if c == "," and not depth and not quoted:
            found.append(text[last:i])
            last = i + 1
    return [*found, text[last:]] if text.strip() else []


def _parsed(line: str) -> Schema:
    line = re.sub(r"(?<=Tensor)\([a-z*][^()]*\)", "", line[line.index("("):])
    left, _, right = line.rpartition(" -> ")
    found, only_named, any_number = [], False, False
    for part in _parts(left[left.index("(") + 1:left.rindex(")")]):
        part = part.strip()
        if part in ("*", "..."):
            only_named, any_number = only_named or part == "*", any_number or part == "..."
            continue
        declared, equals, default = part.partition("=")
        kind, _, name = declared.rpartition(" ")
        t, count = _type(kind)
        found.append(Parameter(name, t, count, default if equals else None, only_named, kind.rstrip("?") in _BY_NAME))
    returns = NONE if right.strip() == "()" else _type(right)[0]
    return Schema(tuple(found), returns, any_number)


@functools.cache
def _more() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "schemas.txt").read_text().splitlines():
        found.setdefault(re.split(r"[.(]", line)[0], []).append(line)
    return found


@functools.cache
def schemas(name: str) -> tuple[Schema, ...]:
    """Those of an operator `aten::name`; none where there is no such operator."""
    return tuple(_parsed(line) for line in [*_aten_lines().get(name, ()), *_more().get(name, ())])


class Mismatch(Exception):
    """No schema takes the arguments; the text says why."""


def called(name: str, args: list[Value], named: dict[str, Value]) -> Value:
    """The call of an operator. Raises Mismatch."""
    reasons = []
    known = schemas(name)
    if not known:
        raise Mismatch(f"Unknown builtin op: aten::{name}")
    for conversions in (False, True):
        for schema in known:
            try:
                return _matched(name, schema, args, named, conversions)
            except Mismatch as reason:
                reasons.append(str(reason))
    given = ", ".join([str(a.type) for a in args] + [f"{k}={v.type}" for k, v in named.items()])
    raise Mismatch(f"Arguments for call are not valid. No schema of aten::{name} takes ({given}): {'; '.join(dict.fromkeys(reasons[:len(known)]))}")


def _matched(name: str, schema: Schema, args: list[Value], named: dict[str, Value], conversions: bool) -> Value:
    names = [p.name for p in schema.parameters]
    named = {k if k in names else _ALIASES.get(k, k): v for k, v in named.items()}
    positional = [p for p in schema.parameters if not p.only_named]
    bound: dict[str, Type] = {}
    words: list[str] = []
    used = 0
    skipped = False
    for p in schema.parameters:
        given: Value | None = None
        if not p.only_named and used < len(args):
            if p is positional[-1] and _takes_the_rest(p, args[used:]):
                given = _as_list(args[used:])
                used = len(args)
            else:
                given = args[used]
                used += 1
            if p.name in named:
                raise Mismatch(f"argument {p.name} is given twice")
        elif p.name in named:
            given = named[p.name]
        if given is None:
            if p.default is None:
                raise Mismatch(f"argument {p.name} not provided")
            skipped = True
            continue
        word = converted(given, p.type, conversions, p.count, bound)
        words.append(f"{p.name}={word}" if skipped or p.only_named or p.by_name else word)
        skipped = skipped or p.by_name
    if used < len(args):
        if not schema.any_number:
            raise Mismatch(f"expected at most {len(positional)} argument(s) but received {len(args)} argument(s)")
        words += [a.text for a in args[used:]]
    extra = named.keys() - set(names)
    if extra:
        raise Mismatch(f"unknown keyword argument '{extra.pop()}'")
    return Value(f"torch.{name}({', '.join(words)})", replaced(schema.returns, bound))


def _takes_the_rest(p: Parameter, rest: list[Value]) -> bool:
    """`x.view(2, 3)`, for a list whose size is left open."""
    if p.type.name != "List" or p.count or not rest or fits(rest[0].type, p.type) or _FREE.fullmatch(p.type.args[0].name):
        return False
    return all(fits(x.type, p.type.args[0]) or p.type.args[0] == INT and x.type == TENSOR for x in rest)


def _as_list(items: list[Value]) -> Value:
    words = [x.text if x.type != TENSOR or items[0].type == TENSOR else f"int({x.text})" for x in items]
    return Value(f"[{', '.join(words)}]", listed(INT if any(x.type == INT for x in items) else items[0].type))


def converted(v: Value, t: Type, conversions: bool = True, count: int = 0, bound: dict[str, Type] | None = None) -> str:
    """A value's text where a t is wanted. Raises Mismatch."""
    if bound is not None and _has_free(t):
        alike = v.type.name == "Tuple" and v.type.args and len(set(v.type.args)) == 1 and t.name == "List"
        if alike and not _known(t, bound):  # a tuple of one type is a list here
            _binds(listed(v.type.args[0]), t, bound)
        if not alike:
            return _bind(v, t, bound)
        t = replaced(t, bound)
    if fits(v.type, t):
        return v.text
    inner = t.args[0] if t.name == "Optional" else t
    if inner.name == "List":
        if count and fits(v.type, inner.args[0]):
            return v.text
        if v.type.name == "Tuple" and v.type.args and all(fits(x, inner.args[0]) for x in v.type.args):
            return v.text if v.items is None else f"[{', '.join(v.items)}]"
        if v.empty:
            return f"annotate({inner}, [])"
    if inner.name == v.type.name == "Tuple" and len(inner.args) == len(v.type.args) and not inner.named and (v.items or "(" not in v.text):
        words = v.items or [f"{v.text}[{i}]" for i in range(len(inner.args))]
        return tuple_of([Value(converted(Value(word, a), b, conversions), b) for word, a, b in zip(words, v.type.args, inner.args)]).text
    if conversions and inner == DEVICE and v.type.name == "str":
        return f"torch.device({v.text})"
    if conversions and v.type == TENSOR and inner in (INT, FLOAT, NUMBER):
        return f"{inner}({v.text})" if inner != NUMBER else f"torch.item({v.text})"
    if conversions and v.type == BOOL and inner in (INT, FLOAT, NUMBER):
        return f"{inner if inner == FLOAT else INT}({v.text})"
    if conversions and v.type == NUMBER and inner in (INT, FLOAT):
        return f"{inner}({v.text})"
    if inner == FLOAT and v.type == INT and v.loose:  # a layer's own number, where Python takes both
        return float_text(float(v.constant))
    if t.name == "Union":
        for member in t.args:
            try:
                word = converted(v, member, False, count)
                n = len(v.type.args)  # a union takes no tuple for a list
                return word if v.type.name != "Tuple" or member.name != "List" or v.items else f"[{', '.join(f'{v.text}[{i}]' for i in range(n))}]"
            except Mismatch:
                pass
    raise Mismatch(f"Expected a value of type '{t}' but instead found type '{v.type}'")


def _has_free(t: Type) -> bool:
    return bool(_FREE.fullmatch(t.name)) or any(map(_has_free, t.args))


def replaced(t: Type, bound: dict[str, Type]) -> Type:
    """t with what its free names stand for."""
    if _FREE.fullmatch(t.name):
        return bound.get(t.name, TENSOR)
    made = Type(t.name, tuple(replaced(x, bound) for x in t.args), t.fields)
    return optional(made.args[0]) if t.name == "Optional" else made


def _bind(v: Value, t: Type, bound: dict[str, Type]) -> str:
    if not _binds(v.type, t, bound):
        raise Mismatch(f"Could not match type {v.type} to {replaced(t, bound) if _known(t, bound) else t}")
    return v.text


def _known(t: Type, bound: dict[str, Type]) -> bool:
    return t.name in bound if _FREE.fullmatch(t.name) else all(_known(x, bound) for x in t.args)


def _binds(a: Type, t: Type, bound: dict[str, Type]) -> bool:
    if _FREE.fullmatch(t.name):
        if t.name not in bound:
            bound[t.name] = a
            return True
        return fits(a, bound[t.name])
    if not _has_free(t):
        return fits(a, t)
    return a.name == t.name and len(a.args) == len(t.args) and all(_binds(x, y, bound) for x, y in zip(a.args, t.args))


