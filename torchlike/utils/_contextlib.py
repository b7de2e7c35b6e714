"""torch.utils._contextlib: context managers that are decorators too, each call under a fresh one. Libraries derive theirs from it."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..autograd import grad_mode
from ..autograd.grad_mode import DecoratorContextManager as _DecoratorContextManager

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


def context_decorator(ctx: Any, func: Callable) -> Callable:
    """`func` inside the context `ctx`, or inside the one that `ctx` makes at each call; RuntimeError for a class."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(f"{ctx} is a context manager and can be called as well: pass `lambda: ctx` or `lambda: ctx()`")
    if inspect.isclass(func):
        raise RuntimeError("a class cannot be decorated: decorate its methods")
    return grad_mode.context_decorator(ctx if callable(ctx) else lambda: ctx, func)


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that also decorates without parentheses."""

    def __new__(cls, orig_func: Callable | None = None) -> Any:
        self = super().__new__(cls)
        return self if orig_func is None else self(orig_func)
