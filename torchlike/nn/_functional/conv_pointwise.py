"""Convolutions of single positions (1 x 1): a product of each image, all in one operation, where a loop would copy every image."""
from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax


def serves(geo) -> bool:
    """Whether a `conv_cpu.Geometry` is of this kind, and its weights, which each image is given a copy of, take less room than the images."""
    return (geo.taps == geo.groups == 1 and set(geo.stride) == {1} and not any(map(any, geo.padding)) and
            max(geo.channels, geo.features) <= math.prod(geo.outs))


def _product(weights, x):
    return jnp.matmul(jnp.broadcast_to(weights, (len(x), *weights.shape)), x)


def convolve(x, w, geo):
    """(N, O, *outs)."""
    return _product(w.reshape(geo.features, geo.channels), x.reshape(geo.batch, geo.channels, -1)).reshape(geo.batch, geo.features, *geo.outs)


def gradients(x, w, g, geo, needs: tuple) -> list:
    """As conv_cpu.gradients."""
    made = []
    g = g.reshape(geo.batch, geo.features, -1)
    if needs[0]:
        turned = lax.optimization_barrier(w.reshape(geo.features, geo.channels).T)
        made.append(_product(turned, g).reshape(geo.batch, geo.channels, *geo.sizes))
    if needs[1]:
        x = x.reshape(geo.batch, geo.channels, -1)
        longer, other = (g, x) if geo.features >= geo.channels else (x, g)
        sums = jnp.matmul(longer, other.swapaxes(1, 2)).sum(0)
        made.append((sums if longer is g else sums.T).reshape(geo.features, geo.channels, *geo.kernel))
    return made
