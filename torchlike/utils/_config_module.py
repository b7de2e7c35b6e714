"""Settings that lie in a module, and changes of them for the length of a block."""
from __future__ import annotations

from contextlib import ContextDecorator
from functools import reduce
from types import ModuleType
from typing import Any


class Patch(ContextDecorator):
    """A context manager and decorator: settings of a module, by dotted names, have other values inside."""

    def __init__(self, module: ModuleType, changes: dict[str, Any]) -> None:
        self.module, self.changes = module, changes
        self.before: list[dict[str, Any]] = []

    def _place(self, name: str) -> tuple[Any, str]:
        *path, last = name.split(".")
        return reduce(lambda owner, part: getattr(owner, part, None), path, self.module), last

    def __enter__(self) -> None:
        for name in self.changes:
            if not hasattr(*self._place(name)):
                raise AttributeError(f"{self.module.__name__.replace(__name__.partition('.')[0], 'torch', 1)}.{name} does not exist")
        self.before.append({name: getattr(*self._place(name)) for name in self.changes})
        self._set(self.changes)

    def __exit__(self, *exc: object) -> None:
        self._set(self.before.pop())

    def _set(self, values: dict[str, Any]) -> None:
        for name, x in values.items():
            setattr(*self._place(name), x)


def patch_of(module: ModuleType) -> Any:
    """`patch(name, value)`, `patch({name: value})` and `patch(name=value)` for the settings of a module."""
    def patch(arg1: str | dict[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Patch:
        """A context manager and decorator: settings have these values inside. AttributeError for one that there is not."""
        if arg1 is not None and kwargs:
            raise AssertionError("cannot specify kwargs with a name or a dictionary")
        return Patch(module, kwargs if arg1 is None else {arg1: arg2} if isinstance(arg1, str) else dict(arg1))
    return patch
