"""Where XLA's own convolution on the CPU is faster than the loops of conv_cpu.py.

Since jaxlib 0.10 XLA gives many convolutions of float32 to a library (YNNPACK) that comes near the processor's peak: it wants the
channels last, so the order of the axes is changed before and after, and with few output channels its rows are half empty.
On several cores it splits only convolutions with many channels on both sides; the loops' products are split where they are large.
`benchmarks/convolution.py` measures both.
"""
from __future__ import annotations

import functools
import math
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

FEATURES = 32  # output channels from which the library's rows are full
UNPADDED = 1 << 20  # elements of an input without padding that are many
MOVED = 1 << 22  # elements of input and result from which changing the order of axes costs too much
SPLIT_PRODUCT, SPLIT_CHANNELS = 8 << 20, 128  # multiply-adds of a product, and channels of a convolution, that several cores share


def convolve(x, w, geo):
    """The convolution of a `conv_cpu.Geometry`."""
    return _by_image(x, w, geo) if _large_and_unpadded(geo) else lax.conv_general_dilated(x, w, geo.stride, geo.padding, rhs_dilation=geo.dilation)


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
    if set(geo.stride) != {1}:  # where the loops must gather all offsets
        return True
    if dtype != np.float32 or len(geo.sizes) != 2 or set(geo.dilation) != {1} or geo.features < FEATURES:
        return False
    inputs, weights, outputs = (geo.batch * geo.channels * math.prod(geo.sizes), geo.features * geo.channels * geo.taps,
                                geo.batch * geo.features * math.prod(geo.outs))
    if weights > inputs + outputs or inputs + outputs > MOVED or min(map(min, geo.padding)) < 0:
        return False
    product = geo.features * geo.taps * geo.channels * math.prod(geo.outs) * geo.together // geo.bands
    if len(os.sched_getaffinity(0)) > 1 and product >= SPLIT_PRODUCT and min(geo.channels, geo.features) < SPLIT_CHANNELS:
        return False
    return _is_there()
