"""Quotients that are rounded once: by what is repeated, and by constants, XLA divides by way of the reciprocal, so that 41 / 41 is less than 1;
and x / y / z it makes x / (y * z).

Under `vmap` it still does where only the numerator has the batch.
"""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core import dtype as dt
from .._core.arrays import cast
from .._core.registry import Elementwise, Plan
from .narrow import NARROW


def over(xp, x, n: float):
    """x / n, for a count that the program knows."""
    n = x.dtype.type(n)
    if xp is np:
        return x / n
    if not x.ndim:
        return x / lax.optimization_barrier(n)
    return lax.platform_dependent(x, cpu=lambda x: x / lax.optimization_barrier(jnp.full(x.shape, n)), default=lambda x: x / n)


def over_twice(xp, x, y, plan: Plan):
    """x / y / y, where y * y may leave the range."""
    q = x / y
    return (q if xp is np or plan.device.type != "cpu" else lax.optimization_barrier(q)) / y


class Quotient(Elementwise):
    """x / y, or what is made of it."""

    def make(self, avals: tuple, statics: tuple) -> Plan:
        plan = super().make(avals, statics)
        (out,), run = plan.outs, plan.run
        if plan.device.type != "cpu" or out.dtype.category != dt.FLOAT:
            return plan
        kind = np.dtype(np.float32) if out.dtype in NARROW else out.dtype.np

        def exactly(xp, x, y):
            if xp is not np:  # behind the barrier both look like any array; XLA drops the barrier before it fuses
                x, y = lax.optimization_barrier((x, jnp.broadcast_to(cast(xp, y, kind), out.shape)))
            return run(xp, x, y)
        plan.run = exactly
        return plan
