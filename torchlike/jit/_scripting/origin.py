"""Whose a function or class is. `torchlike.install` gives what torch has torch's module names, so those do not tell."""
from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

_HERE = __name__.rpartition(".")[0] + "."


def home(x: Any) -> str:
    """The name of the module that a function or class was written in."""
    if isinstance(x, FunctionType):
        return x.__globals__.get("__name__") or ""
    name = getattr(x, "__module__", None) or ""
    if name == "torch" or name.startswith("torch."):
        own = "torchlike" + name[5:]
        return own if getattr(sys.modules.get(own), getattr(x, "__name__", ""), None) is x else name
    return name


def is_own(x: Any) -> bool:
    """Whether it is torchlike's."""
    return home(x).partition(".")[0] == "torchlike"


def is_library(f: Any) -> bool:
    """Whether a function is of torch.nn's in TorchScript."""
    return home(f).startswith(_HERE)


def is_public(f: Any, name: str) -> bool:
    """Whether a function is torch's of this name."""
    return isinstance(f, FunctionType) and is_own(f) and getattr(sys.modules["torchlike"], name, None) is f
