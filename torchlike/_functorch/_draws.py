"""Random draws under vmap whose numbers depend on the values of tensors: drawn outside, for all examples at once."""
from __future__ import annotations

from collections.abc import Callable

from .._tensor import Tensor
from ..autograd.grad_mode import no_grad
from ._rules import evaluated
from ._trace import RANDOM, Trace, innermost


def by_values(function: Callable, batches: Callable, args: tuple, kwargs: dict) -> Tensor | None:
    """function(*args) inside of an open call of vmap, for results without derivative; None where none is open. batches: the
    function of tensors with one more dimension, the first."""
    trace = innermost()
    tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    if trace is None or kwargs.get("out") is not None or not tensors:
        return None
    if trace.randomness == "error":
        raise RuntimeError(RANDOM)
    with no_grad():
        outer = evaluated(trace, tensors)
        same = trace.randomness == "same"
        if same and any(d is not None for _, d in outer):
            raise RuntimeError("Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch")
        with trace.suspended():
            given = iter([t for t, _ in outer] if same else _aligned(trace, outer))
            taken = [next(given) if isinstance(x, Tensor) else x for x in args]
            made = (function if same else batches)(*taken, **{name: next(given) if isinstance(x, Tensor) else x for name, x in kwargs.items()})
        return made if same else trace.placeholder(made, 0)


def _aligned(trace: Trace, outer: list[tuple[Tensor, int | None]]) -> list[Tensor]:
    """The tensors with a row per example, and as many further dimensions each that they broadcast against each other as one example's do."""
    rank = max(t.ndim - (d is not None) for t, d in outer)
    rows = [t.expand(trace.size, *t.shape) if d is None else t.movedim(d, 0) for t, d in outer]
    return [t.reshape((trace.size, *(1,) * (rank + 1 - t.ndim), *t.shape[1:])) for t in rows]
