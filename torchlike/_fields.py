"""What a tensor's `__dict__` shows: what its user stored on it. The engine's own fields lie in the same dictionary, unseen.

A class of a program's own may have attributes that are called as the engine's fields are (`_value`, `_layout`): see `Shared`.
"""
from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, MutableMapping
from types import CodeType, FunctionType
from typing import Any

ENGINE = frozenset("""_value _storage _edge _out _grad _grad_dtype _base _chain _seen _layout _writes _plain _of_data _inference _sparse _former _several
_unplaced _held _quantizer _trained _dims _inside _sorted _unique _of_leaf _places _expanded _pointers _others _idle""".split())

_TORCHS = frozenset(("_base", "_grad"))  # PyTorch has these, too: one attribute for all
_OURS = __name__.partition(".")[0]


class Fields:
    """The base of Tensor: the dictionary of an instance as it is.

    Its instances are Tensor's. Hot paths ask for it, as Python looks for a check of its own first in classes of a metaclass, which Tensor's is:
    0.1 us for a number or a Parameter.
    """

    __module__ = "torch"


fields = Fields.__dict__["__dict__"].__get__  # fields(t): engine's and user's


class Attributes(dict):
    """A tensor's `__dict__`: what is written into it is written to the tensor."""

    __slots__ = ("_fields",)

    def __init__(self, held: dict[str, Any]):
        super().__init__({name.removeprefix("."): x for name, x in held.items() if name not in ENGINE})
        self._fields = held

    def __setitem__(self, name: str, x: Any) -> None:
        self._fields[_place(name)] = x
        super().__setitem__(name, x)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        del self._fields[_place(name)]

    def __ior__(self, more):
        self.update(more)
        return self

    def __reduce__(self):
        return dict, (dict(self),)

    def pop(self, name: str, *default):
        if name not in self:
            return super().pop(name, *default)
        x = self[name]
        del self[name]
        return x

    update, setdefault, popitem, clear = (getattr(MutableMapping, name) for name in ("update", "setdefault", "popitem", "clear"))


def _place(name: str) -> str:
    """Where in `fields(t)` a user's attribute lies."""
    return f".{name}" if name in ENGINE else name


class AttributesOf:
    """The descriptor `Tensor.__dict__`."""

    def __get__(self, t, cls=None) -> Attributes:
        return Attributes(fields(t))

    def __set__(self, t, attributes: dict) -> None:
        shown = Attributes(fields(t))
        shown.clear()
        shown.update(attributes)


def show(cls: type) -> None:
    """Puts the descriptor before that of a plain class which is looked at earlier (class MetaTensor(MetaObj, Tensor) in monai)."""
    found = next(c.__dict__["__dict__"] for c in cls.__mro__ if "__dict__" in c.__dict__)
    if found.__class__ is not AttributesOf:
        gc.get_referents(cls.__dict__)[0]["__dict__"] = AttributesOf()  # a class lets nobody assign this one name
        cls.__module__ = cls.__module__  # forgets what was looked up before


class Shared:
    """An attribute of a class of a program's own whose name is that of an engine's field or method: the engine sees its own, everybody else the program's.

    Who asks tells which is meant, so that programs pay for it only where names meet.
    """

    def __init__(self, name: str, cls: type) -> None:
        self.name, self.place = name, f".{name}"
        found = [(_is_a_programs(c), c.__dict__[name]) for c in cls.__mro__ if name in c.__dict__]
        self.given = [x for programs, x in found if programs][:1]
        self.ours = [x for programs, x in found if not programs][:1]

    def __get__(self, t: Any, cls: type | None = None) -> Any:
        if not _engine_asks():
            return self.of_program(t, cls)
        if t is not None and self.name in fields(t):
            return fields(t)[self.name]
        return self._found(self.ours, t, cls)

    def of_program(self, t: Any, cls: type | None = None) -> Any:
        if t is not None and self.place in fields(t) and not any(hasattr(type(x), "__set__") for x in self.given):
            return fields(t)[self.place]
        return self._found(self.given, t, cls)

    def _found(self, held: list, t: Any, cls: type | None) -> Any:
        for x in held:
            if isinstance(x, Shared):
                return x.of_program(t, cls)
            return x.__get__(t, cls) if hasattr(type(x), "__get__") else x
        raise AttributeError(f"'{(cls or type(t)).__name__}' object has no attribute '{self.name}'")

    def __set__(self, t: Any, x: Any) -> None:
        if _engine_asks():
            fields(t)[self.name] = x
        else:
            self.give(t, x)

    def give(self, t: Any, x: Any) -> None:
        """As a program's own line `t.name = x`."""
        for held in self.given:
            if hasattr(type(held), "__set__"):
                held.give(t, x) if isinstance(held, Shared) else held.__set__(t, x)
                return
        fields(t)[self.place] = x

    def __delete__(self, t: Any) -> None:
        if (self.name if (ours := _engine_asks()) else self.place) not in fields(t):
            raise AttributeError(self.name)
        del fields(t)[self.name if ours else self.place]


def _engine_asks() -> bool:
    """Whether the line that reads or writes an attribute is one of torchlike's."""
    return sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] == _OURS


def _is_a_programs(cls: type) -> bool:
    return (cls.__dict__.get("__module__") or "").partition(".")[0] not in (_OURS, "torch", "builtins")


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for x in code.co_consts:
        if x.__class__ is CodeType:
            yield from _names(x)


def share(cls: type, root: type) -> None:
    """Give a program's class, just made, its own attributes where their names are those of `root`'s fields and methods."""
    if not _is_a_programs(cls):
        return
    named, methods = set(), set()
    for own in [c.__dict__ for c in cls.__mro__ if c is cls or _is_a_programs(c) and not issubclass(c, root)]:
        slots = own.get("__slots__", ())
        named.update(own, (slots,) if isinstance(slots, str) else slots, own.get("__annotations__", ()))
        for x in own.values():
            for f in (getattr(x, "__func__", x), getattr(x, "fget", None), getattr(x, "fset", None)):
                f = getattr(f, "__wrapped__", f)
                if f.__class__ is FunctionType:
                    named.update(_names(f.__code__))
        methods.update(name for name in own if name[:1] == "_" and name[:2] != "__" and root.__dict__.get(name).__class__ is FunctionType)
    for name in named & (ENGINE - _TORCHS) | methods:
        setattr(cls, name, Shared(name, cls))


def ask(t: Any, name: str) -> Any:
    """t.name as a program sees it."""
    found = _shared(t, name)
    return getattr(t, name) if found is None else found.of_program(t, type(t))


def has(t: Any, name: str) -> bool:
    """hasattr(t, name) as a program sees it."""
    try:
        ask(t, name)
    except AttributeError:
        return False
    return True


def give(t: Any, name: str, x: Any) -> None:
    """t.name = x as a program does it."""
    found = _shared(t, name)
    if found is not None:
        found.give(t, x)
    elif name in ENGINE and name not in _TORCHS:
        fields(t)[f".{name}"] = x
    else:
        setattr(t, name, x)


def _shared(t: Any, name: str) -> Shared | None:
    if name not in ENGINE:
        return None
    return next((x for c in type(t).__mro__ if isinstance(x := c.__dict__.get(name), Shared)), None)
