"""Calls that torchlike's own function refuses: their operators, for the class of an argument to say what they mean.

Which shapes, dtypes and positions go together is a class's own affair: its (2, 5) tensor may stand for a matrix of another size. PyTorch asks nothing
before the class; torchlike's functions ask first, and what they refuse comes here.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _leaves
from .._aten_schemas import overload
from .._core.grad_mode import mode
from .._ops import aten
from .._plainly import dispatching
from .._public import FUNCTIONS
from .._tensor import Tensor
from .functions import run_as
from .writes import any_dispatches

OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "matmul": "matmul", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}


def otherwise(name: str, f: Callable) -> Callable:
    """f, or the operator of its name where f fails before any class was asked."""
    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        before = dispatching.asked
        try:
            return f(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError):
            if dispatching.asked != before or dispatching.disabled or not any_dispatches(args) and not any_dispatches(tuple(kwargs.values())):
                raise
            form = _form(name, args, kwargs)
            if form is None:
                raise
        return form()
    return run


def _form(name: str, args: tuple, kwargs: dict) -> Callable | None:
    """What makes the result by operators; None where there are none, or their derivative is not known."""
    if name == "linear":
        return _linear(*args, **kwargs)
    if name in ("matmul", "mm", "mv") and len(args) == 2 and not kwargs:
        dims = tuple(t.ndim if isinstance(t, Tensor) else -1 for t in args)
        if dims in ((2, 2), (2, 1)):
            return functools.partial(_product, "mm" if dims == (2, 2) else "mv", *args)
    if mode.enabled and any(isinstance(x, Tensor) and x.requires_grad for x in (*args, *kwargs.values())):
        return None
    found = overload(name, args, kwargs)
    if found is None:
        return None
    schema, given, named = found
    return functools.partial(_leaves.hand_on, schema.operator(), *given, **named)


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Callable | None:
    if input.ndim != 2 or weight.ndim != 2:
        return None

    def run() -> Tensor:
        turned = weight.t()
        return FUNCTIONS["mm"](input, turned) if bias is None else FUNCTIONS["addmm"](bias, input, turned)
    return run


def _product(name: str, a: Tensor, b: Tensor) -> Tensor:
    def back(needs: tuple, saved: tuple, g: Tensor) -> list:
        a, b = saved
        if name == "mv":
            return [g.outer(b.conj()) if needs[0] else None, a.t().conj().mv(g) if needs[1] else None]
        return [g.mm(b.t().conj()) if needs[0] else None, a.t().conj().mm(g) if needs[1] else None]
    return run_as(name.capitalize(), back, lambda a, b: _leaves.hand_on(getattr(aten, name).default, a, b), a, b)
