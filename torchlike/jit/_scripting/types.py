"""TorchScript's types: what they are called, which value has which, which of them stand for which others."""
from __future__ import annotations

import enum
import inspect
import types as python_types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..._core.device import device
from ..._core.dtype import dtype
from ..._tensor import Tensor
from ..._torch_names import public


@dataclass(frozen=True)
class Type:
    """A type; `args` are those inside it. `fields` name the parts of a tuple, whose class is `named` where it has one."""

    name: str
    args: tuple[Type, ...] = ()
    fields: tuple[str, ...] = field(default=(), compare=False)
    named: str = ""

    def __str__(self) -> str:
        if self.named:
            return self.named
        if self.name == "Tuple" and not self.args:
            return "Tuple[()]"
        return f"{self.name}[{', '.join(map(str, self.args))}]" if self.args else self.name


TENSOR, INT, FLOAT, BOOL, STR, COMPLEX = map(Type, ("Tensor", "int", "float", "bool", "str", "complex"))
NONE, NUMBER, DEVICE, ANY, GENERATOR = map(Type, ("NoneType", "number", "Device", "Any", "Generator"))
_NUMBERS = (INT, FLOAT, COMPLEX)
_PLAIN = {int: INT, float: FLOAT, bool: BOOL, str: STR, complex: COMPLEX, type(None): NONE}


class Unknown(Exception):
    """No type of TorchScript; the text says of what."""


def listed(t: Type) -> Type:
    return Type("List", (t,))


def optional(t: Type) -> Type:
    return t if t.name == "Optional" or t in (NONE, ANY) else Type("Optional", (t,))


def paired(args: Iterable[Type], fields: tuple[str, ...] = ()) -> Type:
    return Type("Tuple", tuple(args), fields)


def is_optional(t: Type) -> bool:
    return t.name == "Optional" or t.name == "Union" and NONE in t.args


def without_none(t: Type) -> Type:
    """What an Optional holds where it is not None."""
    if t.name == "Union":
        return union(x for x in t.args if x != NONE)
    return t.args[0] if t.name == "Optional" else t


def union(kinds: Iterable[Type]) -> Type:
    """One type of several."""
    flat: list[Type] = []
    for t in kinds:
        for x in t.args if t.name == "Union" else (without_none(t), NONE) if t.name == "Optional" else (t,):
            if x not in flat:
                flat.append(x)
    rest = [t for t in flat if t != NONE]
    if len(rest) == 1:
        return optional(rest[0]) if NONE in flat else rest[0]
    return Type("Union", tuple(sorted(flat, key=str))) if rest else NONE


def fits(a: Type, b: Type) -> bool:
    """Whether a value of type a is one of type b."""
    if a == b or b == ANY:
        return True
    if a.name in ("Union", "Optional"):
        return all(fits(x, b) for x in (a.args if a.name == "Union" else (*a.args, NONE)))
    if b == NUMBER:
        return a in _NUMBERS
    if b.name == "Optional":
        return a == NONE or fits(a, b.args[0])
    if b.name == "Union":
        return any(fits(a, x) for x in b.args)
    if b.named:
        return False
    return a.name == b.name == "Tuple" and len(a.args) == len(b.args) and all(map(fits, a.args, b.args))


def unified(a: Type, b: Type) -> Type | None:
    """The type that takes values of both, as after an if; None where there is none."""
    if fits(a, b):
        return b
    if fits(b, a):
        return a
    if NONE in (a, b):
        return optional(b if a == NONE else a)
    if "Optional" in (a.name, b.name):
        inner = unified(without_none(a), without_none(b))
        return None if inner is None else optional(inner)
    if a.name == b.name == "Tuple" and len(a.args) == len(b.args):
        parts = [unified(x, y) for x, y in zip(a.args, b.args)]
        return None if None in parts else paired(parts)
    return None


def of_annotation(hint: Any) -> Type:
    """The type that an annotation means. Raises Unknown."""
    if hint is None:
        return NONE
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Tensor):
        return TENSOR
    if hint is device:
        return DEVICE
    if hint is dtype:
        return INT
    if hint is Any:
        return ANY
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return enumeration(hint)
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        return named_tuple(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Final:
        return of_annotation(args[0])
    if origin is typing.Annotated:
        return of_annotation(args[0])
    if origin in (list, tuple, dict) and Ellipsis not in args:
        return Type(origin.__name__.capitalize(), tuple(map(of_annotation, args)) if args != ((),) else ())
    if origin in (typing.Union, python_types.UnionType):
        return union(map(of_annotation, args))
    if hint in (list, typing.List, dict, typing.Dict, tuple, typing.Tuple, typing.Optional):  # noqa: UP006
        raise Unknown(f"Attempted to use {getattr(hint, '_name', None) or hint.__name__} without a contained type")
    name = f"{hint.__module__}.{hint.__qualname__}" if inspect.isclass(hint) else repr(hint)
    raise Unknown(f"Unknown type annotation: '{name}'")


_NAMED: dict[type, Type] = {}


def named_tuple(cls: type) -> Type:
    """The type of a NamedTuple's class."""
    if cls not in _NAMED:
        try:
            hints = typing.get_type_hints(cls)
        except NameError as error:
            raise Unknown(f"Unknown type annotation in {cls.__qualname__}: {error}") from None
        _NAMED[cls] = Type("Tuple", tuple(of_annotation(hints[f]) if f in hints else TENSOR for f in cls._fields), tuple(cls._fields), _name(cls))
    return _NAMED[cls]


def enumeration(cls: type[enum.Enum]) -> Type:
    """The type of an enumeration; `args` is that of its values."""
    if cls not in _NAMED:
        _NAMED[cls] = Type("Enum", (_common("Enum", map(of_value, (m.value for m in cls))),), tuple(cls.__members__), _name(cls))
    return _NAMED[cls]


def _name(cls: type) -> str:
    """The archive's name of a class; another one than that of other classes."""
    module = public(cls.__module__)
    place = ["__torch__", *(module.split(".") if module != "__main__" else ())]
    name, k = ".".join([*place, cls.__name__]), 0
    while any(t.named == name for t in _NAMED.values()):
        name, k = ".".join([*place, f"___torch_mangle_type_{k}", cls.__name__]), k + 1
    return name


def named_types() -> Iterable[tuple[type, Type]]:
    """The NamedTuples and enumerations that were met so far, and their types."""
    return _NAMED.items()


def of_value(x: Any) -> Type:
    """The type of a Python value. Raises Unknown."""
    if isinstance(x, enum.Enum):
        return enumeration(type(x))
    if type(x) in _PLAIN:
        return _PLAIN[type(x)]
    if isinstance(x, Tensor):
        return TENSOR
    if isinstance(x, dtype):
        return INT
    if isinstance(x, device):
        return DEVICE
    if type(x).__name__ in ("memory_format", "layout"):
        return INT
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return named_tuple(type(x))
    if isinstance(x, tuple):
        return paired(map(of_value, x))
    if isinstance(x, list) and x:
        return listed(_common("List", map(of_value, x)))
    if isinstance(x, dict) and x:
        return Type("Dict", (_common("Dict", map(of_value, x)), _common("Dict", map(of_value, x.values()))))
    empty = isinstance(x, (list, dict))
    raise Unknown(f"{type(x).__name__.capitalize()} trace inputs must have elements" if empty else
                  f"Only tensors and (possibly nested) tuples of tensors, lists, or dictsare supported. Got: {type(x).__name__}")


def _common(holder: str, kinds: Iterable[Type]) -> Type:
    common: Type | None = None
    for t in kinds:
        common = t if common is None else unified(common, t)
        if common is None:
            raise Unknown(f"{holder} inputs to traced functions must have consistent element type")
    return common


