"""Convolutions of single positions (1 x 1): a product of each image, all in one operation, where a loop would copy every image."""
from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax

from .conv_patches import in_single_precision


def serves(geo) -> bool:
    """Whether a `conv_cpu.Geometry` is of this kind, and its weights, which each image is given a copy of, take less room than the images."""
    return (geo.taps == geo.groups == 1 and set(geo.stride) == {1} and not any(map(any, geo.padding)) and
            max(geo.channels, geo.features) <= math.prod(geo.outs))


def _product(weights, x):
    return jnp.matmul(jnp.broadcast_to(weights, (len(x), *weights.shape)), x)


def convolve(x, w, geo, dtype):
    """(N, O, *outs) in `dtype`."""
    x, w = in_single_precision(x.reshape(geo.batch, geo.channels, -1), w.reshape(geo.features, geo.channels))
    return _product(w, x).astype(dtype).reshape(geo.batch, geo.features, *geo.outs)


def gradients(x, w, g, geo, needs: tuple) -> list:
    """As conv_cpu.gradients."""
    made, dtype = [], g.dtype
    g, = in_single_precision(g.reshape(geo.batch, geo.features, -1))
    if needs[0]:
        w, = in_single_precision(w.reshape(geo.features, geo.channels))
        made.append(_product(lax.optimization_barrier(w.T), g).astype(dtype).reshape(geo.batch, geo.channels, *geo.sizes))
    if needs[1]:
        x, = in_single_precision(x.reshape(geo.batch, geo.channels, -1))
        longer, other = (g, x) if geo.features >= geo.channels else (x, g)
        sums = jnp.matmul(longer, other.swapaxes(1, 2)).sum(0)
        made.append((sums if longer is g else sums.T).astype(dtype).reshape(geo.features, geo.channels, *geo.kernel))
    return made
