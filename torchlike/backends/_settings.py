"""A module whose known attributes can be set, and checks them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar

_frozen = False


def disable_global_flags() -> None:
    """From here on settings are made by `flags()` only."""
    global _frozen
    _frozen = True


def flags_frozen() -> bool:
    """Whether assigning a setting raises."""
    return _frozen


@contextmanager
def assignable() -> Iterator[None]:
    """A block in which settings can be assigned, whatever holds outside."""
    global _frozen
    before, _frozen = _frozen, False
    try:
        yield
    finally:
        _frozen = before


class Settings(ModuleType):
    """Gives a module the attributes in `defaults`, each of which keeps its type (None: any), and those in `computed`, read and set by functions."""

    defaults: ClassVar[dict[str, Any]] = {}
    computed: ClassVar[dict[str, tuple[Callable[[], Any], Callable[[Any], None]]]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in type(self).defaults:
            return type(self).defaults[name]
        if name in type(self).computed:
            return type(self).computed[name][0]()
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        default = type(self).defaults.get(name)
        computed = type(self).computed.get(name)
        if _frozen and (name in type(self).defaults or computed):
            name = self.__name__.replace(__name__.partition(".")[0], "torch", 1)
            raise RuntimeError(f"not allowed to set {name} flags after disable_global_flags; please use flags() context manager instead")
        if isinstance(default, bool) and not isinstance(value, bool):
            raise RuntimeError(f"{self.__name__}.{name} expects a bool, but got {type(value).__name__}")
        if computed:
            computed[1](value)
        else:
            super().__setattr__(name, value)

    @contextmanager
    def temporarily(self, **values: Any) -> Iterator[None]:
        """Sets attributes for the length of a `with` block; None leaves one as it is."""
        before = {name: getattr(self, name) for name, value in values.items() if value is not None}
        try:
            with assignable():
                for name in before:
                    setattr(self, name, values[name])
            yield
        finally:
            with assignable():
                for name, value in before.items():
                    setattr(self, name, value)
