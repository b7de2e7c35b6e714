"""Pickling with torch's names: what is ours is written under the name that real torch gives the same thing."""

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
        if isinstance(obj, (type, types.FunctionType)) and "<locals>" in obj.__qualname__:
            raise AttributeError(f"Can't pickle local object {obj.__qualname__!r}")
        return self._reduce_ours(obj)

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
