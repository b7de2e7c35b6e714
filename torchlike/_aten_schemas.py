"""The schemas of torch.ops.aten: which overload takes a call of a public function, and in which form a graph writes its arguments."""
from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from ._core.device import device as _device
from ._core.dtype import dtype as _dtype
from ._ops import OpOverload, aten
from ._schemas import _REQUIRED, Argument, Schema
from ._tensor import Tensor

# Where torch has one signature for tensors and numbers, a number is a tensor to the operator
_TENSORS_OF_NUMBERS = frozenset("add sub mul div subtract multiply divide true_divide floor_divide".split())
_PREFERRED = {**dict.fromkeys(("std", "var", "std_mean", "var_mean"), ("dim", "correction")), "split": ("Tensor",)}
_LISTED = re.compile(r"(.*)\[(\d*)\](\??)")


class AtenSchema(Schema):
    """One overload's."""

    def __init__(self, text: str) -> None:
        name, _, overload = text[:text.index("(")].partition(".")
        super().__init__(f"aten::{name}", text[text.index("("):])
        self.op_name, self.overload = name, overload or "default"
        self.returns = text[text.rindex("->") + 2:].strip()
        self.lists = "[]" in self.returns  # what it returns is one list
        self.several = self.lists or self.returns.startswith("(")
        self.makes_tensors = "Tensor" in self.returns

    def operator(self) -> OpOverload | None:
        """torch.ops.aten's."""
        packet = getattr(aten, self.op_name, None)
        return None if packet is None else getattr(packet, self.overload, None)

    def bound(self, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
        """A call's arguments as a graph has them: lists where lists are meant, and what equals its default left out. None: another overload's."""
        names = {("self" if k == "input" and "input" not in self.names else "input" if k == "self" and "self" not in self.names else
                  {"axis": "dim", "keepdims": "keepdim"}.get(k, k) if k not in self.names else k): x for k, x in kwargs.items()}
        args = self._packed(args)
        if len(args) > len(self.positional) or any(k not in self.names or self.names[k] < len(args) for k in names):
            return None
        given, last, named = [], 0, {}
        for i, a in enumerate(self.arguments):
            x = args[i] if i < len(args) else names.get(a.name, a.default)
            if x is _REQUIRED:
                return None
            default = self._default(a)
            x = default if x is a.default else self._taken(a, x)
            if x is NotImplemented:
                return None
            same = x is default or type(x) is type(default) and not isinstance(x, Tensor) and not _tensors_in(x) and x == default
            if a.only_named:
                if not same:
                    named[a.name] = x
                continue
            given.append(x)
            last = last if same else i + 1
        return tuple(given[:last]), named

    def _packed(self, args: tuple) -> tuple:
        """`x.view(2, 3)` as `x.view([2, 3])`, `block_diag(x, y)` as `block_diag([x, y])`."""
        if args and self.positional and self.positional[-1].kind == "Tensor[]" and len(args) >= len(self.positional) and isinstance(args[-1], Tensor):
            n = len(self.positional) - 1
            return (*args[:n], list(args[n:]))
        for i, a in enumerate(self.positional):
            listed = _LISTED.fullmatch(a.kind)
            if listed and listed[1] in ("int", "SymInt") and i < len(args) and all(isinstance(x, int) and not isinstance(x, bool) for x in args[i:]):
                if len(args) > i + 1 and len(self.positional) == i + 1 or len(args) == i + 1 and not listed[2]:
                    return (*args[:i], list(args[i:]))
        return args

    def _default(self, a: Argument) -> Any:
        """As the parameter takes it; a constant of C++ (a memory format) stands for itself."""
        made = a.default if a.default is _REQUIRED else self._taken(a, a.default)
        return a.default if made is NotImplemented else made

    def _taken(self, a: Argument, x: Any) -> Any:
        return _taken(a.kind, x, a.name == "other" and self.op_name.rstrip("_") in _TENSORS_OF_NUMBERS)


def _tensors_in(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and any(isinstance(y, Tensor) for y in x)


def _taken(kind: str, x: Any, numbers: bool = False) -> Any:
    """x as a parameter of this kind takes it, or NotImplemented."""
    listed = _LISTED.fullmatch(kind)
    if listed:
        inner, n, optional = listed.groups()
        if x is None:
            return None if optional else NotImplemented
        if n and not isinstance(x, (list, tuple)):
            x = [x] * int(n)
        if not isinstance(x, (list, tuple)) or (n and len(x) == 1 != int(n) and not isinstance(x[0], Tensor)):
            if not isinstance(x, (list, tuple)):
                return NotImplemented
            x = list(x) * int(n)
        made = [_taken(inner, y) for y in x]
        return NotImplemented if any(y is NotImplemented for y in made) else made
    if kind.endswith("?"):
        return None if x is None else _taken(kind[:-1], x, numbers)
    number = isinstance(x, (int, float)) or (isinstance(x, complex) and kind == "Scalar")
    if kind == "Tensor":
        return x if isinstance(x, Tensor) or (numbers and (number or isinstance(x, complex))) else NotImplemented
    if kind == "Scalar":
        return x if number else NotImplemented
    if kind in ("int", "SymInt"):
        return x if isinstance(x, int) and (kind == "int" or not isinstance(x, bool)) else NotImplemented
    if kind in ("float", "SymFloat"):
        return float(x) if number and not isinstance(x, bool) else NotImplemented
    if kind == "bool":
        return x if isinstance(x, bool) else NotImplemented
    if kind == "str":
        return x if isinstance(x, str) else NotImplemented
    if kind == "ScalarType":
        return x if isinstance(x, _dtype) else NotImplemented
    if kind == "Device":
        return x if isinstance(x, _device) else _device(x) if isinstance(x, str) else NotImplemented
    return x if type(x).__name__ == {"MemoryFormat": "memory_format", "Layout": "layout"}.get(kind, kind) else NotImplemented


@functools.cache
def _lines() -> dict[str, list[str]]:
    """The schemas of each operator, from a file of one on each line."""
    found: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "_aten_schemas.txt").read_text().splitlines():
        found.setdefault(line[:line.index("(")].partition(".")[0], []).append(line)
    return found


@functools.cache
def schemas(name: str) -> list[AtenSchema]:
    """Those of an operator, the one to try first at the beginning."""
    found = [AtenSchema(line) for line in _lines().get(name, ())]
    first = _PREFERRED.get(name, ())
    return sorted(found, key=lambda s: (first.index(s.overload) if s.overload in first else 9, s.overload == "Scalar" and name.rstrip("_") in _TENSORS_OF_NUMBERS))


def schema_of(target: OpOverload) -> AtenSchema | None:
    """An overload's."""
    return next((s for s in schemas(target.overloadpacket.__name__) if s.overload == target._overloadname), None) if target.namespace == "aten" else None


def overload(name: str, args: tuple, kwargs: dict) -> tuple[AtenSchema, tuple, dict] | None:
    """Which overload takes these arguments, and in which form; None where there is none."""
    for schema in schemas(name):
        made = schema.bound(args, kwargs)
        if made is not None and schema.operator() is not None:
            return schema, *made
    return None
