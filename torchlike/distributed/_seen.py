"""Collectives as operators of `torch.ops.c10d`, which modes and classes with `__torch_dispatch__` are told of. Where there are none, nothing is asked."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .. import _tensor
from .._core import program
from .._plainly import dispatching
from .._tensor import Tensor
from ._counting import state as counting
from ._counting import tell


def _dispatched(x: Any) -> bool:
    """Whether a tensor among (lists of) arguments has a class that dispatches."""
    return any(map(_dispatched, x)) if isinstance(x, (list, tuple)) else isinstance(x, Tensor) and x._dispatches


def seen_as(name: str | Callable[..., str], given: Callable[..., tuple]) -> Callable[[Callable], Callable]:
    """A decorator for a collective that is the operator `c10d::name` of the arguments `given(**its own)`, where somebody dispatches. A
    `name` that is a function says which operator."""
    def decorate(collective: Callable) -> Callable:
        signature = inspect.signature(collective)

        def count(args: tuple, kwargs: dict) -> None:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            tell(f"c10d.{name if isinstance(name, str) else name(**bound.arguments)}")

        @functools.wraps(collective)
        def call(*args: Any, **kwargs: Any) -> Any:
            if counting.watchers:
                count(args, kwargs)
            if _tensor.record is program.record or dispatching.disabled:
                return collective(*args, **kwargs)
            from .. import _leaves
            if not _leaves.state.stack and not _dispatched([*args, *kwargs.values()]):
                return collective(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = given(**bound.arguments)
            if arguments is None:  # this process is not in the group
                return None
            from ..ops import c10d
            operator = name if isinstance(name, str) else name(**bound.arguments)
            made = getattr(c10d, operator)(*arguments)
            return (made[-1] if isinstance(made, tuple) else made) if bound.arguments.get("async_op", True) else None
        call.plain = collective
        return call
    return decorate
