"""Which function translates which operation."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

TABLE: dict[str, Callable] = {}  # by the operation's name: f(g, *inputs, *statics) -> Var, or a tuple of them
WHOLE: dict[str, Callable] = {}  # public functions that are taken as one: whether to, by their arguments ("data": sizes depend on data)
NAMES: dict[str, str] = {}  # what a result is called in the file, where that is not the operation's name


def translates(*names: str, called: str = "") -> Callable:
    """Decorator: f translates these operations. NotImplemented: what the operation did inside is translated instead."""
    def register(f: Callable) -> Callable:
        for name in names:
            TABLE[name] = f
            if called:
                NAMES[name] = called
        return f
    return register


def whole(*names: str, when: Callable[..., Any] = lambda *args, **kwargs: True) -> Callable:
    """Decorator: f translates these public functions, whose parameters it gets in their order."""
    def register(f: Callable) -> Callable:
        for name in names:
            WHOLE[name], TABLE[name] = when, f
        return f
    return register
