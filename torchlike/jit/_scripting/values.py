"""What an expression stands for while it is compiled: a value that has a type and a text, or what has none: modules, functions, several things."""
from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._core.device import device
from ..._core.dtype import dtype
from .._operators import _FORMATS, _number
from .types import BOOL, DEVICE, FLOAT, INT, NONE, STR, Type, enumeration, paired

if TYPE_CHECKING:
    from ...nn.modules.module import Module

VARIES: Any = object()  # the constant of what is none


@dataclass
class Value:
    """What has a type. `constant`: its Python value, where that is known; `loose`: a number of torchlike's own, an int where a float is meant;
    `empty`: a literal `[]` or `{}`; `items`: the texts of a literal tuple's parts."""

    text: str
    type: Type
    constant: Any = VARIES
    loose: bool = False
    empty: bool = False
    items: tuple[str, ...] | None = None

    @property
    def known(self) -> bool:
        return self.constant is not VARIES


@dataclass
class Held:
    """A module, by the text that leads to it."""

    text: str
    module: Module


@dataclass
class Method:
    """A module's method."""

    owner: Held
    name: str


@dataclass
class Operator:
    """aten's operator, or its method of a value."""

    name: str
    bound: Value | None = None


@dataclass
class Outside:
    """A Python object: what a global name stands for."""

    value: Any


@dataclass
class Several:
    """A fixed number of anything: modules of a ModuleList, values beside modules."""

    items: list[Any]


@dataclass
class Loop:
    """`range`, `enumerate` or `zip` of first-class values, which a for statement runs over."""

    text: str
    item: Type


@dataclass
class Special:
    """A container's own method, called: `items`, `keys`, `values`, ..."""

    name: str
    owner: Held


def float_text(x: float) -> str:
    if math.isfinite(x):
        return repr(x)
    return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"


def quoted(text: str) -> str:
    """A string as TorchScript's lexer reads it: other characters than ASCII's as the octal numbers of their bytes."""
    out = []
    for byte in text.encode():
        c = chr(byte)
        out.append({"\n": "\\n", "\t": "\\t", "\\": "\\\\", '"': '\\"'}.get(c) or (c if 32 <= byte < 127 else f"\\{byte:03o}"))
    return '"' + "".join(out) + '"'


def literal(x: Any, loose: bool = False) -> Value | None:
    """A Python value as a constant; None where it cannot be one."""
    if x is None:
        return Value("None", NONE, None)
    if isinstance(x, enum.Enum):
        t = enumeration(type(x))
        return Value(f"{t}.{x.name}", t, x)
    if isinstance(x, bool):
        return Value(repr(x), BOOL, x)
    if type(x) is int or isinstance(x, int) and type(x).__module__ == "builtins":
        return Value(repr(int(x)), INT, int(x), loose) if -1 << 63 <= x < 1 << 63 else None
    if isinstance(x, float):
        return Value(float_text(x), FLOAT, float(x), loose)
    if isinstance(x, str):
        return Value(quoted(x), STR, str(x))
    if isinstance(x, dtype):
        return Value(str(_number(x)), INT, x)
    if isinstance(x, device):
        return Value(f"torch.device({quoted(str(x))})", DEVICE, x)
    if type(x).__name__ == "memory_format":
        return Value(str(_FORMATS.index(x.name)), INT, x)
    if type(x).__name__ == "layout":
        return Value("0", INT, x)
    if isinstance(x, tuple):
        parts = [literal(y, loose) for y in x]
        if None not in parts:
            return tuple_of(parts, x)
    return None


def tuple_of(parts: list[Value], constant: Any = VARIES) -> Value:
    if constant is VARIES and parts and all(p.known for p in parts):
        constant = tuple(p.constant for p in parts)
    words = tuple(p.text for p in parts)
    return Value(f"({', '.join(words)}{',' * (len(parts) == 1)})" if parts else "annotate(Tuple[()], ())", paired(p.type for p in parts), constant, items=words)
