"""Calls of torch.autograd.Function in a function that vmap traces. The traced gradient has what their backward recorded; where JAX differentiates it
again it would take the derivative of what their forward recorded, which need not be the one that their backward says. So they are called again there."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax

from .._core.program import META_ARRAY
from .._interop import from_jax
from .._tensor import Tensor
from ..autograd import _tangents, _under_jax
from ..autograd.function import FunctionCtx
from ..utils._pytree import tree_flatten
from ._trace import untraced

if TYPE_CHECKING:
    from ._trace import Trace


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """Inside of the block no transform of torch.func is open."""
    with _under_jax.set_apart(_apart), _tangents.unseen(), untraced():
        yield


class Called:
    """One such call: its arguments (tensors by their references) and, once it is over, the references of its results."""

    def __init__(self, trace: Trace, cls: type, args: tuple, kwargs: dict, separate: bool, needs: tuple):
        self.trace: Trace | None = trace
        self.cls, self.kwargs, self.separate, self.needs = cls, kwargs, separate, needs
        self.why = ""  # it cannot be called again
        self.draws = trace.draws
        tensors = [a for a in args if isinstance(a, Tensor)]
        others = tree_flatten((kwargs, [a for a in args if not isinstance(a, Tensor)]))[0]
        if any(isinstance(x, Tensor) for x in others):
            self.why = "has tensors in keyword arguments or containers"
        elif any(t._sparse or t._dispatches or t._value.array is META_ARRAY for t in tensors):
            self.why = "has tensors that are not strided"
        self.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        self.given = [] if self.why else [trace.reference(t._current()) for t in tensors]
        self.constants = [None if isinstance(a, Tensor) else a for a in args]
        self.outs: list[int] = []
        self.end = 0

    def returned(self, made: list) -> None:
        """It is over: what it returned is in the graph."""
        trace, self.trace = self.trace, None
        self.end = len(trace.results)
        if trace.draws != self.draws:
            self.why = "draws random numbers"
        if not self.why:
            self.outs = [trace.reference(o._current()) for o in made if isinstance(o, Tensor)]
            if len({*self.outs, *self.given}) < len(self.outs) + len(set(self.given)):
                self.why = "returns an argument as it is"
        trace.functions.append(self)

    def key(self) -> tuple:
        """What tells it from other calls; a call with arguments that have no hash is like no other."""
        known = self.cls, self.separate, self.needs, tuple(self.given), tuple(self.outs), self.end, self.why
        try:
            more = tuple(self.constants), tuple(sorted(self.kwargs.items()))
            hash(more)
        except TypeError:
            return *known, id(self), self  # kept, so that no other gets its number
        return *known, tuple((type(x), x) for x in self.constants), more

    def again(self, env: list, inputs: list) -> None:
        """Put results into env that JAX differentiates by the class's own backward."""
        if self.why:
            raise NotImplementedError(f"torchlike: the second derivative, from outside of vmap, of {self.cls.__name__}, which {self.why}")
        args: list[Any] = list(self.constants)
        for i, ref in zip(self.places, self.given):
            x = env[ref] if ref >= 0 else inputs[-1 - ref]
            args[i] = from_jax(x if self.needs[i] else jax.lax.stop_gradient(x))
        with _apart():
            made = _under_jax.applied(self.cls, tuple(args), self.kwargs, self.separate, FunctionCtx)
        made = made if isinstance(made, tuple) else (made,)
        for ref, t in zip(self.outs, [t for t in made if isinstance(t, Tensor)]):
            env[ref] = t.jax()
