"""A module whose known attributes can be set, and checks them."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar


class Settings(ModuleType):
    """Gives a module the attributes in `defaults`, each of which keeps its type (None: any)."""

    defaults: ClassVar[dict[str, Any]] = {}

    def __getattr__(self, name: str) -> Any:
        if name in type(self).defaults:
            return type(self).defaults[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        default = type(self).defaults.get(name)
        if isinstance(default, bool) and not isinstance(value, bool):
            raise RuntimeError(f"{self.__name__}.{name} expects a bool, but got {type(value).__name__}")
        super().__setattr__(name, value)

    @contextmanager
    def temporarily(self, **values: Any) -> Iterator[None]:
        """Sets attributes for the length of a `with` block; None leaves one as it is."""
        before = {name: getattr(self, name) for name, value in values.items() if value is not None}
        try:
            for name in before:
                setattr(self, name, values[name])
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)
