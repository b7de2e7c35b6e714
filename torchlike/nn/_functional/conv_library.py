"""Where XLA's own convolution on the CPU is faster than the loops of conv_cpu.py.

Since jaxlib 0.10 XLA gives many convolutions of float32 to a library (YNNPACK) that comes near the processor's peak: it wants the
channels last, so the order of the axes is changed before and after, and with few output channels its rows are half empty.
Several cores share only those with many channels on both sides, where the loops' products are shared as soon as they are large.
`benchmarks/convolution.py` measures both.
"""
from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core import processor

FEATURES = 32  # output channels from which the library's rows are full
MOVED = 1 << 20  # elements of input and result up to which changing the order of axes is cheap
UNPADDED = 1 << 20  # elements of an input without padding that are many
SHARED_CHANNELS = 128  # channels on both sides from which several cores share the library's work,
SHARED_PRODUCT = 32 << 20  # and multiply-adds of a product from which they share it


def convolve(x, w, geo):
    """The convolution of a `conv_cpu.Geometry`."""
    if _large_and_unpadded(geo):
        return _by_image(x, w, geo)
    return lax.conv_general_dilated(x, w, geo.stride, geo.padding, rhs_dilation=geo.dilation)


def _by_image(x, w, geo):
    w = lax.optimization_barrier(w.transpose(2, 3, 1, 0))  # once, not in the loop

    def body(i, y):
        image = lax.dynamic_slice_in_dim(x, i, 1).transpose(0, 2, 3, 1)
        image = lax.conv_general_dilated(image, w, geo.stride, geo.padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return lax.dynamic_update_slice_in_dim(y, image.transpose(0, 3, 1, 2), i, 0)
    return lax.fori_loop(np.int32(0), np.int32(geo.batch), body, jnp.zeros((geo.batch, geo.features, *geo.outs), x.dtype))


def _large_and_unpadded(geo) -> bool:
    """jaxlib 0.10's library takes twice as long then; an image at a time is no slower."""
    return len(geo.sizes) == 2 and set(geo.dilation) == {1} and geo.batch * geo.channels * math.prod(geo.sizes) > UNPADDED and not any(map(any, geo.padding))


@functools.cache
def _is_there() -> bool:
    """Whether this XLA has the library: what it makes of a small convolution says so."""
    images, weights = (jax.ShapeDtypeStruct(shape, np.float32) for shape in ((1, FEATURES, 8, 8), (FEATURES, FEATURES, 3, 3)))
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        made = jax.jit(lambda x, w: lax.conv(x, w, (1, 1), "SAME")).lower(images, weights).compile()
    return "ynn" in made.as_text()


def serves(geo, dtype) -> bool:
    """Whether to leave a convolution (a `conv_cpu.Geometry`) to XLA."""
    if geo.groups > 1 or geo.taps == 1:
        return False
    several, shared = processor.cores() > 1, min(geo.channels, geo.features) >= SHARED_CHANNELS
    if set(geo.stride) != {1}:  # where the loops must gather all offsets
        product = geo.features * geo.taps * geo.channels * math.prod(geo.outs) * geo.together // geo.bands
        return len(geo.sizes) < 3 and (shared or not several or product < SHARED_PRODUCT)  # with three axes the library takes ten times as long
    if dtype != np.float32 or len(geo.sizes) != 2 or set(geo.dilation) != {1} or geo.features < FEATURES or min(map(min, geo.padding)) < 0:
        return False
    moved = geo.batch * (geo.channels * math.prod(geo.sizes) + geo.features * math.prod(geo.outs))
    if geo.features * geo.channels * geo.taps > moved or not (shared if several else moved <= MOVED):
        return False
    return _is_there()
