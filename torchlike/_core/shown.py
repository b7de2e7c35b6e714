"""Classes that are shown as PyTorch's, and pickled where they are found: PyTorch itself may be importable under that name."""
from __future__ import annotations

import copyreg
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any


class Shown(type):
    """The class of a class whose `__module__` is one of torch's."""

    def __init_subclass__(mcs, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        copyreg.pickle(mcs, _reduced)  # which goes by the very class


def _reduced(cls: type) -> str | tuple[Callable, tuple[str, str]]:
    """By the name that it shows, where that leads to it; else by where torchlike has it, if it has."""
    module, name = cls.__module__, cls.__qualname__
    if module.partition(".")[0] != "torch" or _found(sys.modules.get(module), name) is cls or _of_torchlike(module, name) is not cls:
        return name
    return _of_torchlike, (module, name)


def _of_torchlike(module: str, name: str) -> Any:
    return _found(importlib.import_module("torchlike" + module.removeprefix("torch")), name)


def _found(module: Any, name: str) -> Any:
    return functools.reduce(lambda holder, part: getattr(holder, part, None), name.split("."), module)


copyreg.pickle(Shown, _reduced)
