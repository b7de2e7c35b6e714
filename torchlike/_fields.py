"""What a tensor's `__dict__` shows: what its user stored on it. The engine's own fields lie in the same dictionary, unseen."""
from __future__ import annotations

import gc
from collections.abc import MutableMapping
from typing import Any

ENGINE = frozenset("""_value _storage _edge _out _grad _grad_dtype _base _chain _seen _layout _writes _plain _of_data _inference _sparse _former _several
_unplaced _held _trained _dims _inside _sorted _unique _of_leaf _places _expanded _pointers _others""".split())


class Fields:
    """The base of Tensor: the dictionary of an instance as it is."""

    __module__ = "torch"


fields = Fields.__dict__["__dict__"].__get__  # fields(t): engine's and user's


class Attributes(dict):
    """A tensor's `__dict__`: what is written into it is written to the tensor."""

    __slots__ = ("_fields",)

    def __init__(self, held: dict[str, Any]):
        super().__init__({name: x for name, x in held.items() if name not in ENGINE})
        self._fields = held

    def __setitem__(self, name: str, x: Any) -> None:
        self._fields[name] = x
        super().__setitem__(name, x)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        del self._fields[name]

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


class Shown:
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
    if found.__class__ is not Shown:
        gc.get_referents(cls.__dict__)[0]["__dict__"] = Shown()  # a class lets nobody assign this one name
        cls.__module__ = cls.__module__  # forgets what was looked up before
