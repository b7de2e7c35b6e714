"""`@same`: a test is a small program over `torch`; it must do the same on real torch and on the library under test."""
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from compare import Raised, attempt, differences


def same(program: Callable | None = None, *, raises: str | None = None, strides: bool | None = None,
    tol: float = 1.0) -> Callable:
    """Turn `test_x(torch, ...)` into a pytest test that runs it on both libraries and compares what it returns, or all that it yields.

    `raises`: the class that torch itself raises; without it the program must get through on torch.
    """
    if program is None:
        return lambda function: same(function, raises=raises, strides=strides, tol=tol)

    def run(torch: Any, **arguments: Any) -> Any:
        found = program(torch, **arguments)
        return list(found) if inspect.isgenerator(found) else found

    def test(oracle: Any, subject: Any, **arguments: Any) -> None:
        oracle.manual_seed(7)
        want = attempt(run, oracle, **arguments)
        assert getattr(want, "kind", None) == raises, f"real torch: {want}"
        subject.manual_seed(7)
        found = differences(want, attempt(run, subject, **arguments), strides=strides, tol=tol)
        assert not found, "\n" + "\n".join(map(str, found))

    others = list(inspect.signature(program).parameters.values())[1:]
    kinds = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in ("oracle", "subject")]
    test.__signature__ = inspect.Signature(kinds + others)
    test.__name__, test.__doc__, test.__module__ = program.__name__, program.__doc__, program.__module__
    return test


def error(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """The class of what a call raises (as a value to return), or the string "no error"."""
    try:
        function(*args, **kwargs)
    except Exception as caught:  # whichever class it is, it is the result
        return type(caught).__name__.lstrip("_")
    return "no error"


def caught(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """The observed result of a call, or what it raised without the words."""
    outcome = attempt(function, *args, **kwargs)
    return outcome.kind if isinstance(outcome, Raised) else outcome


def same_draws(draw: Callable) -> None:
    """Check that `draw(library)`, a list of arrays, is the same to the bit on both libraries from the same seed."""
    import torch

    import torchlike
    drawn = []
    for library in (torch, torchlike):
        library.manual_seed(5)
        drawn.append(draw(library))
    for a, b in zip(*drawn, strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)


def outcomes(names: dict[str, Any], expressions: list[str]) -> dict[str, Any]:
    """The outcome of each expression, under its own source: a difference then names the call."""
    scope = {**names, "np": np, "math": math}
    return {expression: caught(eval, expression, scope) for expression in expressions}
