"""Types as annotations in a pickle (`Optional[Tensor]`, `list[int]`, `int | None`): data that names classes. Nothing of a file's is called."""
from __future__ import annotations

import functools
import operator
import pickle
import types
import typing
from collections.abc import Callable
from typing import Any

from .unpickler import Resolved

_KINDS = tuple(type(getattr(typing, name)) for name in ("Union", "List", "Tuple", "Callable"))  # of the names that take types in brackets
_FORMS = {name: x for name in typing.__all__ if isinstance(x := getattr(typing, name), _KINDS) or x is typing.Any}


def _refuse(name: str, *asked: Any) -> Exception:
    return pickle.UnpicklingError(f"GLOBAL {name} is not allowed for {', '.join(map(repr, asked))}")


def _in_brackets(form: Any, args: Any) -> Any:
    """``operator.getitem`` as the names of `typing` are pickled with what stands in their brackets."""
    if not any(form is x for x in _FORMS.values()):
        raise _refuse("_operator.getitem", form)
    return form[args]


def _alias(origin: Any, args: Any) -> Any:
    """``types.GenericAlias``: `list[int]`."""
    if not isinstance(origin, type):
        raise _refuse("types.GenericAlias", origin)
    return types.GenericAlias(origin, args)


def _or(*aside: Any) -> Any:
    """Stands for ``operator.or_`` where `_union` asks for it."""
    raise _refuse("_operator.or_", *aside)


def _union(function: Any, args: Any) -> Any:
    """``functools.reduce(operator.or_, classes)``: `int | None`."""
    if function is not _or or not all(isinstance(x, (types.GenericAlias, *_KINDS)) or isinstance(x, type) and type(x).__or__ is type.__or__ for x in args):
        raise _refuse("functools.reduce", function, args)
    return functools.reduce(operator.or_, args)


def _type_of(*given: Any) -> type:
    """``type(None)``, as the types without a name are pickled."""
    if len(given) != 1 or not any(given[0] is x for x in (None, Ellipsis, NotImplemented)):
        raise _refuse("builtins.type", *given)
    return type(given[0])


def names() -> dict[str, Resolved]:
    """What these names mean in a file, by "module.name"."""
    made: dict[str, Resolved] = {f"typing.{name}": Resolved(x) for name, x in _FORMS.items()}
    calls: dict[str, Callable] = {"_operator.getitem": _in_brackets, "types.GenericAlias": _alias, "functools.reduce": _union, "builtins.type": _type_of}
    made.update({name: Resolved(f, call=f) for name, f in calls.items()})
    made.update({f"builtins.{name}": Resolved(x) for name, x in (("Ellipsis", Ellipsis), ("NotImplemented", NotImplemented))})
    made["_operator.or_"] = Resolved(_or, call=_or)
    return made
