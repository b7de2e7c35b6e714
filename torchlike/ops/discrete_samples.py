"""Samples of counts: poisson, binomial. They are drawn from the values of their parameters, which get no gradient through them (PyTorch's poisson gives them zeros)."""
from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._core.aval import broadcast_shapes
from .._core.errors import not_implemented
from .._core.registry import Op
from .._core.rng_discrete import binomial as draw_binomial
from .._core.rng_discrete import poisson as draw_poisson
from .._public import public
from .._tensor import Tensor, apply
from .random import _generator, by_values
from .staged_draws import drawn_from
from .underivable import underived

_POISSON = Op("poisson", lambda xp, rate, sample: +sample, shape=lambda a, s: (a.shape, a.dtype),
              vjp=lambda xp, g: (xp.zeros_like(g), None))


@public(method=False)
@by_values
def poisson(input, generator=None) -> Tensor:
    """Numbers of events, Poisson distributed with the rates that input holds."""
    if input.dtype.category != dt.FLOAT:
        raise not_implemented("poisson_cpu", input.dtype)
    g = _generator(generator)

    def numbers(host):
        if not (host >= 0).all():
            raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
        return draw_poisson(g, host).astype(host.dtype)
    return apply(_POISSON, (input, drawn_from(numbers, [input], tuple(input.shape), input.dtype.np)))


@public(method=False)
@by_values
def binomial(count, prob: Tensor, generator=None) -> Tensor:
    """Numbers of successes in `count` trials of probability `prob`."""
    if count.dtype.category != dt.FLOAT:
        raise ValueError(f"binomial only supports floating-point dtypes for count, got: {count.dtype.short}")
    if prob.dtype.category != dt.FLOAT:
        raise ValueError(f"binomial only supports floating-point dtypes for prob, got: {prob.dtype.short}")
    if count.dtype.itemsize < 4:
        raise not_implemented("binomial_cpu", count.dtype)
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"Found dtype {prob.dtype.short} but expected {count.dtype.short}")
    g = _generator(generator)

    def numbers(*parameters):
        counts, probs = np.broadcast_arrays(*parameters)
        return draw_binomial(g, counts, probs).astype(counts.dtype)
    return underived("binomial", drawn_from(numbers, [count, prob], tuple(broadcast_shapes(count.shape, prob.shape)), count.dtype.np), count, prob)


