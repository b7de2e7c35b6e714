"""torch.classes: classes written in C++, of which there are none here."""
from __future__ import annotations

import types
from typing import Any

from . import ops
from ._ops import loaded_libraries


class _ClassNamespace(types.ModuleType):
    """Those of one name; RuntimeError for each."""

    def __init__(self, name: str) -> None:
        super().__init__("torch.classes" + name)
        self.name = name

    def __getattr__(self, attr: str) -> Any:
        raise RuntimeError(f"Tried to instantiate class '{self.name}.{attr}', but it does not exist! Ensure that it is registered via torch::class_")


class _Classes(types.ModuleType):
    __file__ = "_classes.py"

    def __getattr__(self, name: str) -> _ClassNamespace:
        made = self.__dict__[name] = _ClassNamespace(name)
        return made

    @property
    def loaded_libraries(self) -> set[str]:
        """The paths of the libraries that were loaded."""
        return loaded_libraries

    def load_library(self, path: str) -> None:
        """torch.ops.load_library."""
        ops.load_library(path)


classes = _Classes("torch.classes")
