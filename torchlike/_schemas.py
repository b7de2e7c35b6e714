"""Schemas of operators, `(Tensor x, float s=2.0, *, int[] dims) -> Tensor`: which arguments a call gives, and torch's errors for wrong ones."""
from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ._core.device import device
from ._tensor import Tensor

_REQUIRED = object()
_NAMES = {"SymInt": "int", "Scalar": "number"}


class Argument(NamedTuple):
    """One parameter; `kind` without marks of aliases."""

    kind: str
    name: str
    default: Any
    only_named: bool


def _default(kind: str, text: str) -> Any:
    if kind.startswith("Device") and text != "None":
        return device(text) if kind == "Device" else text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):  # a constant of C++ in PyTorch's own schemas, such as contiguous_format: the kernel's own default says it
        return None


def halves(schema: str) -> tuple[str, str]:
    """What a schema takes and what it returns: before and behind the arrow that stands in no parentheses."""
    depth = 0
    for m in re.finditer(r"[()]|->", schema):
        if m[0] == "->" and not depth:
            return schema[:m.start()].rstrip(), schema[m.end():].strip()
        depth += {"(": 1, ")": -1}.get(m[0], 0)
    return schema, ""


def _arguments(schema: str) -> list[Argument]:
    found, only_named = [], False
    inside = re.sub(r"\([^()]*\)", "", halves(schema)[0].partition("(")[2].removesuffix(")"))
    for part in re.split(r",\s*(?![^\[]*\])", inside):
        if part.strip() == "*":
            only_named = True
        elif part.strip():
            left, equals, default = part.strip().partition("=")
            kind, _, name = left.rpartition(" ")
            found.append(Argument(kind.strip(), name, _default(kind.strip(), default) if equals else _REQUIRED, only_named))
    return found


_CASTS = {"int": int, "SymInt": int, "float": float, "bool": bool}


class Mismatch(Exception):
    """A value that a parameter does not take."""


def _number(x: Any, convert: type, by: str) -> Any:
    if isinstance(x, (str, bytes)) or not hasattr(x, by) or isinstance(x, Tensor) and x.dim():
        raise Mismatch
    return convert(x)


def converted(kind: str, x: Any) -> Any:
    """x as a parameter of this kind takes it."""
    if kind.endswith("?"):
        return None if x is None else converted(kind[:-1], x)
    if hasattr(type(x), "__torch_function__") and not isinstance(x, Tensor):  # stands for a value: torch.fx's Proxy
        return x
    listed = re.fullmatch(r"(.*)\[\d*\]", kind)
    if listed:
        if not isinstance(x, (list, tuple)):
            raise Mismatch
        return [converted(listed[1], y) for y in x]
    if kind == "Tensor" and not isinstance(x, Tensor) or kind == "str" and not isinstance(x, str):
        raise Mismatch
    if isinstance(x, Tensor) and kind in _CASTS:  # of one element
        if x.numel() != 1:
            raise Mismatch
        return _CASTS[kind](x.reshape(()))
    if kind in ("int", "SymInt"):
        return x if x.__class__ is int else _number(x, int, "__index__")
    if kind == "float":
        return x if x.__class__ is float else _number(x, float, "__float__")
    if kind == "bool":
        return _number(x, bool, "__float__")
    if kind == "Scalar" and not isinstance(x, (int, float, complex)):
        raise Mismatch
    return x


def type_name(kind: str, names: Mapping[str, str] = _NAMES) -> str:
    """A schema's type as TorchScript's types print, `int[]?` as Optional[List[int]]; `names`: those of what is no list and not optional."""
    listed = re.fullmatch(r"(.*)\[\d*\](\??)", kind)
    if listed:
        inner = f"List[{type_name(listed[1], names)}]"
        return f"Optional[{inner}]" if listed[2] else inner
    return f"Optional[{type_name(kind[:-1], names)}]" if kind.endswith("?") else names.get(kind, kind)


class Schema:
    """What one operator takes."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text, self.arguments = name, f"{name}{text}", _arguments(text)
        self.positional = [a for a in self.arguments if not a.only_named]
        self.names = {a.name: i for i, a in enumerate(self.arguments)}
        self.written = frozenset(re.findall(r"!(?: *->[^()]*)?\)[?\[\]\d]*\s+(\w+)", text))

    def taken(self, args: tuple, kwargs: Mapping[str, Any]) -> tuple[tuple, dict]:
        """The arguments of a call as the parameters take them: what is positional by position, what was left out still left out."""
        if len(args) > len(self.positional):
            raise RuntimeError(f"{self.name}() takes {len(self.positional)} positional argument(s) but {len(args)} was/were given.  Declaration: {self.text}")
        for name in kwargs:
            at = self.names.get(name)
            if at is None:
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self.text}")
            if at < len(args):
                raise RuntimeError(f"Argument '{name}' specified both as positional and keyword argument. Schema: {self.text}")
        given, named = [self._converted(i, x) for i, x in enumerate(args)], {}
        for i, a in enumerate(self.arguments[len(args):], len(args)):
            if a.name in kwargs:
                x = self._converted(i, kwargs[a.name])
                if i == len(given) and not a.only_named:
                    given.append(x)
                else:
                    named[a.name] = x
            elif a.default is _REQUIRED:
                raise RuntimeError(f"{self.name}() is missing value for argument '{a.name}'. Declaration: {self.text}")
        return tuple(given), named

    def completed(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """`taken` with the defaults of what was left out."""
        full = [*args, *(kwargs.get(a.name, a.default) for a in self.positional[len(args):])]
        return tuple(full), {a.name: kwargs.get(a.name, a.default) for a in self.arguments if a.only_named}

    def shown(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """`taken` as PyTorch's dispatcher shows it: what is positional by position, what is the default left out behind the last that is not."""
        def same(x: Any, default: Any) -> bool:
            return x is default or x.__class__ is default.__class__ and not isinstance(x, Tensor) and bool(x == default)
        args, named = self.completed(args, kwargs)
        end = len(args)
        while end and same(args[end - 1], self.positional[end - 1].default):
            end -= 1
        return args[:end], {name: x for name, x in named.items() if not same(x, self.arguments[self.names[name]].default)}

    def _converted(self, at: int, x: Any) -> Any:
        kind, name, _, _ = self.arguments[at]
        try:
            return converted(kind, x)
        except Mismatch:
            raise RuntimeError(f"{self.name}() Expected a value of type '{type_name(kind)}' for argument '{name}' but instead found type '{type(x).__name__}'.\n"
                               f"Position: {at}\nValue: {x!r}\nDeclaration: {self.text}") from None
