"""Pickling with torch's names: what is ours is written under the name that real torch gives the same thing."""

import functools
import importlib
import io
import pickle
import types
from collections.abc import Callable
from typing import IO, Any

from . import names

# The C pickler looks every global up in sys.modules, where torch is not; the Python one lets us write names.
_Base: type = pickle._Pickler


class Pickler(_Base):
    """``persistent(obj)`` gives a storage's persistent id (or None), ``reduce(obj)`` the construction of one of our
    objects (or NotImplemented).
    """

    def __init__(
        self, stream: IO[bytes], protocol: int, persistent: Callable[[Any], Any], reduce: Callable[[Any], Any]
    ) -> None:
        super().__init__(stream, protocol)
        self._persistent, self._reduce_ours = persistent, reduce

    def persistent_id(self, obj: Any) -> Any:
        return self._persistent(obj)

    def reducer_override(self, obj: Any) -> Any:
        if names.name_of(obj) is not None:
            return ""  # pickle's protocol for "a global": save_global writes it
        made = self._reduce_ours(obj)
        return self.reduce_others(obj) if made is NotImplemented else made

    def reduce_others(self, obj: Any) -> Any:
        """How an object that is not torchlike's is taken apart."""
        if isinstance(obj, (type, types.FunctionType)) and "<locals>" in obj.__qualname__:
            raise AttributeError(f"Can't pickle local object {obj.__qualname__!r}")
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        found = names.name_of(obj)
        if found is None:
            super().save_global(obj, name)
            return
        module, qualified = found
        if self.proto >= 4:
            self.save(module)
            self.save(qualified)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{qualified}\n".encode())
        self.memoize(obj)


def pickler_of(module: Any) -> Callable[..., Pickler]:
    """The Pickler that writes what is not torchlike's as `module.Pickler` does, whatever that is: Python's, or a class on top of one of its two.

    Only Python's own in Python shares its methods with ours. Another is asked how it takes objects apart, and writes nothing itself.
    """
    foreign = module.Pickler
    if foreign is pickle.Pickler:
        return Pickler
    if issubclass(foreign, _Base):
        return type("Pickler", (_Over, foreign), {})
    return functools.partial(_Asking, foreign)


class _Over(Pickler):
    """On top of another class, whose methods take apart what is not torchlike's."""

    def reduce_others(self, obj: Any) -> Any:
        if isinstance(obj, types.ModuleType) and obj.__name__.partition(".")[0] == names.PACKAGE:
            return importlib.import_module, ("torch" + obj.__name__.removeprefix(names.PACKAGE),)
        override = getattr(self.other(), "reducer_override", None)
        return NotImplemented if override is None else override(obj)

    def other(self) -> Any:
        return super(Pickler, self)


class _Asking(_Over):
    def __init__(self, foreign: type, stream: IO[bytes], protocol: int, *rest: Any) -> None:
        super().__init__(stream, protocol, *rest)
        self._foreign = foreign(io.BytesIO(), protocol=protocol)
        if hasattr(self._foreign, "dispatch_table"):
            self.dispatch_table = self._foreign.dispatch_table

    def other(self) -> Any:
        return self._foreign
