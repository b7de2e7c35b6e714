"""What torch.jit.script makes of a function: it runs as it is written, and can be saved."""
from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from .._core.shown import Shown
from ._saves import Saves


class ScriptFunction(Saves, metaclass=Shown):
    """A scripted function. It is compiled to TorchScript when its `code` or its file is asked for; what cannot be compiled raises then."""

    __module__ = "torch.jit"

    def __new__(cls) -> ScriptFunction:
        raise TypeError("ScriptFunction: No constructor defined!")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.__wrapped__.__qualname__  # as a function, where it is found

    @property
    def name(self) -> str:
        """The function's."""
        return self.__wrapped__.__name__

    @property
    def qualified_name(self) -> str:
        """What TorchScript calls it."""
        return self._program().functions[self.__wrapped__][0].name

    @property
    def code(self) -> str:
        """Its text in TorchScript."""
        return self._program().functions[self.__wrapped__][1]

    def _program(self) -> Any:
        from ._scripting.modules import of_function
        return of_function(self.__wrapped__)


def scripted(f: FunctionType) -> ScriptFunction:
    """A function, scripted."""
    made = object.__new__(ScriptFunction)
    functools.update_wrapper(made, f)
    return made
