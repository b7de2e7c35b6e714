"""Reductions that XLA's CPU backend does one element after the other (products, and all of integers), as many side by side, in vector instructions."""
from __future__ import annotations

from collections.abc import Callable

from jax import lax

from .totals import shaped, trailing

MOST, LEAST, MANY = 1 << 7, 1 << 4, 1 << 12  # lanes, and elements from which on they are worth their instructions


def by_lanes(x, dims: tuple, keepdims: bool, reduce: Callable, combine: Callable):
    """reduce(x, axis=dims, keepdims=keepdims) of a tracer; `combine` does it with two arrays."""
    n = trailing(x.shape, dims)
    lanes = MOST if n is None else min(n & -n, MOST)
    if n is None or lanes < LEAST or n < 2 * lanes or x.size < MANY:
        return reduce(x, axis=dims, keepdims=keepdims)

    def on_cpu(x):
        y, k = reduce(x.reshape(-1, n // lanes, lanes), axis=1), lanes
        while k > 1:
            k //= 2
            y = combine(y[:, :k], y[:, k:])
        return shaped(y, x, dims, keepdims)
    return lax.platform_dependent(x, cpu=on_cpu, default=lambda x: reduce(x, axis=dims, keepdims=keepdims))
