"""Operations inside of JAX's own transformations: jax.grad of a program is what its backward() gives.

JAX would differentiate a kernel line by line. Where its formula takes a choice or overflows that is no derivative: logsigmoid at 0, tanh where an
exponential is infinite, a norm of zeros. An operation's own derivative says what is meant there.
"""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import jax
from jax.custom_derivatives import SymbolicZero

from . import dtype as dt
from .derivative import Derivative, PiecesDerivative
from .jax_settings import engine_settings
from .value import Tracer

if TYPE_CHECKING:
    from .registry import Plan


class _State(threading.local):
    differentiating = False  # whether jax.vjp makes an operation's derivative


state = _State()


def derived(plan: Plan, *given) -> tuple:
    """As `plan.jax(*given)`, which JAX differentiates by the operation's own derivative where it has one of real numbers."""
    places = [i for i, x in enumerate(given) if isinstance(x, jax.Array)]
    moving = [i for i in places if isinstance(given[i], Tracer) and plan.avals[i].dtype.category == dt.FLOAT]
    if not moving or not _is_explicit(plan):
        return plan.jax(*given)

    def run(*arrays):
        return plan.jax(*_filled(given, places, arrays))

    call = jax.custom_jvp(run)

    def rule(arrays, tangents):
        changes = {i: t for i, t in zip(places, tangents) if i in moving and not isinstance(t, SymbolicZero)}  # zeros times infinities would count
        with engine_settings():  # JAX may come by when the call is over
            outs = call(*arrays)
            if not changes:
                return outs, tuple(map(jax.numpy.zeros_like, outs))
            full = _filled(given, places, arrays)
            try:
                return outs, tuple(_tangents(plan, full, outs, changes))
            except Exception:  # the gradient is computed in a way that JAX cannot turn around: a loop, a callback, comparisons
                return outs, jax.jvp(lambda *xs: plan.jax(*_filled(full, list(changes), xs)), [full[i] for i in changes], list(changes.values()))[1]
    call.defjvp(rule, symbolic_zeros=True)
    return call(*(given[i] for i in places))


def step(plan: Plan, *given) -> tuple:
    """A step of an operation that is made of operations: differentiated, too, where the whole is."""
    return derived(plan, *given) if state.differentiating else plan.jax(*given)


def _is_explicit(plan: Plan) -> bool:
    derivative = plan.op.derivative
    return (isinstance(derivative, Derivative) and not isinstance(derivative, PiecesDerivative) and plan.differentiable
            and all(a.dtype.category == dt.FLOAT for a in plan.outs) and not any(a is not None and a.dtype.category == dt.COMPLEX for a in plan.avals))


def _filled(given, places: list[int], arrays) -> list:
    full = list(given)
    for i, x in zip(places, arrays):
        full[i] = x
    return full


def _tangents(plan: Plan, given: list, outs: tuple, tangents: dict[int, jax.Array]) -> tuple:
    """What the results move by: the gradient is linear in the results' gradients, and turned around it takes what the inputs move by."""
    needs = tuple(i in tangents for i in range(len(given)))
    ins, read = plan.saved(needs)
    saved = [*(given[i] for i in ins), *(outs[i] for i in read)]
    gradients = plan.op.derivative.bind(plan, needs)
    turned = jax.linear_transpose(lambda *gs: gradients(jax.numpy, [*saved, *gs]), *(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in outs))
    return turned([tangents[i] for i in sorted(tangents)])
