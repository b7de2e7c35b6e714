"""Convolutions on the CPU as matrix products over images that stay in the cache.

XLA's own convolution on the CPU took up to four times as long as torch's, its gradients still do, and grouped ones far
longer. Here a loop takes an image at a time, gathers shifted copies of it into a matrix, and leaves the arithmetic to a matrix product:

  - all offsets gathered (im2col): the matrix has a row per kernel offset and input channel, the product is the result;
  - last axis gathered: the matrix has a row per offset along the last axis and input channel; the product has a row per
    offset along the other axes and output channel, and the result is the sum of its rows, shifted. It copies less when
    there are many channels, but serves only stride 1.

Gradients are the same products transposed. Several images are taken at a time, so that a product is worth sharing among the
cores, very large ones in bands of rows, groups one after the other; depthwise convolutions are sums of shifted copies, and where windows
tile the input, or are single positions, it is one product without a loop (conv_patches.py, conv_pointwise.py). What XLA does faster since it has a library for it is left to XLA
(conv_library.py). `benchmarks/convolution.py` measures it all.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core import processor
from ...ops.materializing import framed, materialized
from . import conv_library, conv_patches, conv_pointwise, windows

ROOM = 96 << 10  # elements that a round gathers on one core,
SHARED_ROOM = 384 << 10  # and for each of several, whose sharing of it takes time,
REUSE = 4  # or so many times the weights, which each round reads once,
CACHE = 1 << 21  # but not more than these; an image of twice as many is taken in bands
WIDE = 5  # from this width of its kernel on a depthwise convolution's weight gradient is added up by rows,
LONG = 40  # and from this width of its result, whatever the kernel: a row then fills enough vectors
RECOMPUTED = 25  # offsets of a depthwise convolution up to which each reader adds them up again: storing the result costs about as much
HIGH = 32  # rows of a depthwise convolution's result up to which its weight gradient adds them up as one formula
LANES = 16  # width in multiples of which LLVM makes vectors of that
APART = 4  # times as many elements with zeros between a depthwise convolution's results, up to which its input's gradient takes them so
FEW = 32  # rows of the matrix below which the product is not worth the turning of several images
FEW_COPIES = 6  # offsets up to which each is gathered by itself: XLA compiles a kernel for each, and a loop runs no later,
SHORT = 1 << 12  # unless each has so few elements that the loop's rounds are felt
GATHER, MOVE = 42, 18  # the time of gathering an element at all offsets, and along one axis, in multiply-adds of a product


@dataclass(frozen=True)
class Geometry:
    """One convolution: (N, C, *sizes) with weights (O, C / groups, *kernel) to (N, O, *outs)."""

    batch: int
    channels: int
    sizes: tuple
    features: int
    kernel: tuple
    stride: tuple
    padding: tuple  # (low, high) of each axis
    dilation: tuple
    groups: int = 1

    @functools.cached_property
    def padded(self) -> tuple:
        return tuple(n + lo + hi for n, (lo, hi) in zip(self.sizes, self.padding))

    @functools.cached_property
    def outs(self) -> tuple:
        return tuple((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(self.padded, self.kernel, self.stride, self.dilation))

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    @property
    def depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.channels

    @property
    def low(self) -> bool:
        """Whether a depthwise convolution's weight gradient adds up all rows of an image in one formula."""
        return (self.depthwise and self.channels == self.features and len(self.kernel) == 2 and self.outs[0] <= HIGH
                and (self.stride == (1, 1) or self.kernel[-1] >= WIDE) and min(map(min, self.padding)) >= 0)

    @property
    def apart(self) -> bool:
        """Whether the input's gradient is that of stride 1 with zeros between the result's elements: sums of whole rows are so much faster."""
        return self.depthwise and self.channels == self.features and 1 < math.prod(self.stride) <= APART

    @functools.cached_property
    def gathers_last(self) -> bool:
        """Whether only the last axis is gathered."""
        if len(self.sizes) < 2 or set(self.stride) != {1}:
            return False
        channels, features, last = self.channels // self.groups, self.features // self.groups, self.kernel[-1]
        multiply = self.taps * channels * features
        waste = math.prod(self.padded[:-1]) / math.prod(self.outs[:-1])  # rows that are computed and thrown away
        return waste * (multiply + MOVE * (last * channels + self.taps // last * features)) < multiply + GATHER * self.taps * channels

    @property
    def gathered(self) -> int:
        """Elements that are gathered of one image."""
        if self.gathers_last:
            return self.kernel[-1] * self.channels // self.groups * math.prod(self.padded[:-1]) * self.outs[-1]
        return self.taps * self.channels // self.groups * math.prod(self.outs)

    @functools.cached_property
    def together(self) -> int:
        """Images in one product."""
        if self.groups > 1 or (self.taps * self.channels < FEW and not self.gathers_last):
            return 1
        cores = processor.cores()
        near = SHARED_ROOM * cores if cores > 1 else ROOM if self.taps > 1 else 0
        room = min(max(near, REUSE * self.taps * self.channels * self.features), CACHE)
        most = max(1, room // self.gathered)
        return next(n for n in range(min(most, self.batch), 0, -1) if self.batch % n == 0)

    @functools.cached_property
    def bands(self) -> int:
        """Pieces of an image, along its first axis."""
        rows = self.outs[0]
        return next(n for n in range(1, rows + 1) if rows % n == 0 and (self.gathered // n <= 2 * CACHE or n == rows)) if self.together == 1 else 1

    def adjoint(self) -> Geometry | None:
        """The convolution with turned weights that takes the result's gradient to the input's; None where it is not one, or
        multiplies at more positions than the loop does."""
        if set(self.stride) != {1} or (self.groups > 1 and not self.groups == self.channels == self.features):
            return None
        if math.prod(self.sizes) > math.prod(self.outs) and not self.depthwise:
            return None
        padding = tuple((d * (k - 1) - lo, d * (k - 1) - hi) for k, d, (lo, hi) in zip(self.kernel, self.dilation, self.padding))
        return replace(self, channels=self.features, features=self.channels, sizes=self.outs, padding=padding)

    def round(self) -> Geometry:
        """What one round of the loop convolves. With bands, the image is padded along the first axis before the loop."""
        one = replace(self, batch=1)
        if self.together > 1:  # images side by side are one more axis, with a kernel of 1
            return replace(one, sizes=(self.together, *self.sizes), kernel=(1, *self.kernel), stride=(1, *self.stride),
                           padding=((0, 0), *self.padding), dilation=(1, *self.dilation))
        if self.groups > 1 and not self.depthwise:
            one = replace(one, channels=self.channels // self.groups, features=self.features // self.groups, groups=1)
        if self.bands > 1:
            rows = (self.outs[0] // self.bands - 1) * self.stride[0] + self.dilation[0] * (self.kernel[0] - 1) + 1
            one = replace(one, sizes=(rows, *self.sizes[1:]), padding=((0, 0), *self.padding[1:]))
        return one

    # -- parts of an image ---------------------------------------------------------------------------------------------

    @property
    def few(self) -> int:
        """The most offsets that are not gathered in a loop."""
        return windows.FEW if self.depthwise or self.channels * math.prod(self.outs) <= SHORT else FEW_COPIES

    def windows(self, x) -> Iterator:
        """For each offset inside the kernel, the elements of a padded image that it meets, one per position of the result."""
        return windows.slices(jnp, x, self.kernel, self.stride, self.dilation, self.outs)

    def stacked(self, x, axis: int):
        """The windows in one array, (C, taps, *outs) or (taps, C, *outs)."""
        return windows.stacked(jnp, x, self.kernel, self.stride, self.dilation, self.outs, axis, self.few)

    def spread(self, parts, axis: int):
        """The adjoint of all windows: parts, an array with the taps along an axis, added up at their places, (C, *sizes) without the padding."""
        shape = (self.channels, *self.padded)
        if any(lo < 0 or hi < 0 for lo, hi in self.padding):
            shape = (self.channels, *(n + max(lo, 0) + max(hi, 0) for n, (lo, hi) in zip(self.sizes, self.padding)))
        image = windows.spread(jnp, parts, shape, self.kernel, self.stride, self.dilation, self.outs, axis, self.few)
        return image[(slice(None), *(slice(lo, lo + n) for (lo, _), n in zip(self.padding, self.sizes)))]


# -- one round of the loop, in three ways ----------------------------------------------------------------------------------


class Gathered:
    """All offsets gathered. Images are (C, *sizes), results (O, *outs), weights a matrix (O, C * taps), as they lie in memory."""

    def __init__(self, geo: Geometry):
        self._read(geo, geo.features, geo.channels * geo.taps)

    def _read(self, geo: Geometry, rows: int, columns: int) -> None:
        self.geo, self.weights_shape = geo, (rows, columns)
        self.turned = rows < columns  # the weights' gradient is a product that XLA takes less time for with the longer side first
        self.gradient_shape = (columns, rows) if self.turned else (rows, columns)

    def weights(self, w):
        """(O, C, taps) as the matrix."""
        return w.reshape(self.weights_shape)

    def weights_back(self, w):
        """The weights' gradient in their order."""
        return self._in_rows(w).reshape(self.geo.features, self.geo.channels, self.geo.taps)

    def _in_rows(self, w):
        return w.T if self.turned else w

    def pad(self, image):
        padding = self.geo.padding
        if not any(map(any, padding)):
            return image
        return lax.pad(image, np.zeros((), image.dtype), [(0, 0, 0)] + [(lo, hi, 0) for lo, hi in padding])

    def gather(self, image):
        """The matrix (C * taps, positions)."""
        return self.geo.stacked(self.pad(image), 1).reshape(self.weights_shape[1], -1)

    def result(self, weights, image):
        return (weights @ self.gather(image)).reshape(self.geo.features, *self.geo.outs)

    def rows(self, g):
        """The result's gradient as the matrix that the gradients multiply."""
        return g.reshape(self.geo.features, -1)

    def weight_gradient(self, rows, image):
        columns = self.gather(image)
        return columns @ rows.T if self.turned else rows @ columns.T

    def image_gradient(self, weights, rows):
        geo = self.geo
        return geo.spread((weights.T @ rows).reshape(geo.channels, geo.taps, *geo.outs), 1)


class LastGathered(Gathered):
    """Only offsets along the last axis gathered; the product's rows are summed over the others. The weights' matrix is
    (leading taps * O, last taps * C)."""

    def __init__(self, geo: Geometry):
        n = len(geo.sizes) - 1
        none = ((0, 0),) * n
        # the offsets along the last axis, all rows kept; and those along the others, on what the last axis left
        self.last = replace(geo, kernel=(1,) * n + geo.kernel[-1:], padding=none + geo.padding[-1:], sizes=geo.padded[:-1] + geo.sizes[-1:])
        self.lead = replace(geo, channels=geo.features, kernel=geo.kernel[:-1] + (1,), padding=(*none, (0, 0)), sizes=geo.padded[:-1] + geo.outs[-1:])
        self._read(geo, self.lead.taps * geo.features, self.last.taps * geo.channels)

    def weights(self, w):
        geo = self.geo
        return w.reshape(geo.features, geo.channels, self.lead.taps, self.last.taps).transpose(2, 0, 3, 1).reshape(self.weights_shape)

    def weights_back(self, w):
        geo = self.geo
        return self._in_rows(w).reshape(self.lead.taps, geo.features, self.last.taps, geo.channels).transpose(1, 3, 0, 2)

    def gather(self, image):
        return self.last.stacked(self.pad(image), 0).reshape(self.weights_shape[1], -1)

    def result(self, weights, image):
        lead = self.lead
        rows = (weights @ self.gather(image)).reshape(lead.taps, self.geo.features, *lead.sizes)
        pieces = windows.slices(jnp, rows, lead.kernel, lead.stride, lead.dilation, lead.outs)
        return sum(piece[i] for i, piece in enumerate(pieces))

    def rows(self, g):
        # on flattened positions an offset is one shift, when g has zeros where its rows are shorter than the image's
        lead = self.lead
        wide = (*lead.outs[:1], *lead.sizes[1:])
        g = lax.pad(g, np.zeros((), g.dtype), [(0, 0, 0)] + [(0, n - m, 0) for n, m in zip(wide, lead.outs)]).reshape(lead.channels, -1)
        strides = [math.prod(lead.sizes[i + 1:]) for i in range(len(lead.sizes))]
        used = sum((n - 1) * s for n, s in zip(lead.outs, strides)) + 1
        rows = jnp.zeros((lead.taps * lead.channels, math.prod(lead.sizes)), g.dtype)
        for i, at in enumerate(windows.offsets(lead.kernel)):
            rows = lax.dynamic_update_slice(rows, g[:, :used], (i * lead.channels, sum(o * d * s for o, d, s in zip(at, lead.dilation, strides))))
        return rows

    def image_gradient(self, weights, rows):
        geo, last = self.geo, self.last
        image = last.spread((weights.T @ rows).reshape(last.taps, geo.channels, *last.outs), 0)
        return image[(slice(None), *(slice(lo, lo + n) for (lo, _), n in zip(geo.padding[:-1], geo.sizes)))]


class Depthwise(Gathered):
    """A kernel per channel: sums of shifted copies, without a product."""

    def __init__(self, geo: Geometry):
        self.geo = geo
        self.weights_shape = self.gradient_shape = (geo.taps, geo.channels, geo.features // geo.channels, *(1,) * len(geo.sizes))

    def weights(self, w):
        geo = self.geo
        return w.reshape(geo.channels, -1, geo.taps).transpose(2, 0, 1).reshape(self.weights_shape)

    def weights_back(self, w):
        return w.reshape(self.weights_shape[:3]).transpose(1, 2, 0)

    def _windows(self, image) -> list:
        image = self.pad(image)
        return [part[:, None] for part in self.geo.windows(image)]

    def result(self, weights, image):
        return sum(w * part for w, part in zip(weights, self._windows(image))).reshape(self.geo.features, *self.geo.outs)

    def rows(self, g):
        return g.reshape(self.geo.channels, -1, *self.geo.outs)

    def weight_gradient(self, rows, image):
        if len(self.geo.kernel) == 2 and (self.geo.kernel[-1] >= WIDE or self.geo.outs[-1] >= LONG):
            return self._by_row(rows, self.pad(image))
        axes = tuple(range(2, rows.ndim))
        return jnp.stack([(rows * part).sum(axes, keepdims=True) for part in self._windows(image)])

    def _by_row(self, rows, image):
        """A row of the result at a time: XLA adds up along an axis element by element, but sums of rows in vectors."""
        geo = self.geo
        (high, wide), (stride, step), (apart, between), width = geo.kernel, geo.stride, geo.dilation, geo.outs[1]

        def body(h, sums):
            lines = lax.dynamic_slice_in_dim(image, h * np.int32(stride), (high - 1) * apart + 1, 1)[:, None, ::apart]
            g = lax.dynamic_slice_in_dim(rows, h, 1, 2)
            return tuple(s + g * lines[..., i * between:i * between + (width - 1) * step + 1:step] for i, s in enumerate(sums))
        sums = tuple(jnp.zeros((*rows.shape[:2], high, width), rows.dtype) for _ in range(wide))
        sums = lax.fori_loop(np.int32(0), np.int32(geo.outs[0]), body, sums)
        return jnp.stack([s.sum(-1) for s in sums]).transpose(3, 0, 1, 2).reshape(self.weights_shape)

    def image_gradient(self, weights, rows):
        return self.geo.spread(jnp.stack([(w * rows).sum(1) for w in weights]), 0)


# -- the loop --------------------------------------------------------------------------------------------------------------


class Loop:
    """Which part of the batch a round takes, and where its result goes."""

    def __init__(self, geo: Geometry, dtype):
        self.geo, self.dtype = geo, dtype
        one = geo.round()
        self.kind = (Depthwise if geo.depthwise else LastGathered if geo.gathers_last else Gathered)(one)
        self.channels, self.features = one.channels, one.features
        self.groups = geo.channels // one.channels
        self.rounds = np.int32(geo.batch // geo.together * self.groups * geo.bands)
        self.out_rows = geo.outs[0] // geo.bands
        self.rows, self.step = (one.sizes[0], self.out_rows * geo.stride[0]) if geo.bands > 1 else (geo.sizes[0], 0)

    def weights(self, w):
        """(O, C / groups, *kernel) as one matrix per group."""
        w = w.reshape(self.groups, self.features, -1, self.geo.taps)
        return jnp.stack([self.kind.weights(part) for part in w]) if self.groups > 1 else self.kind.weights(w[0])[None]

    def weights_back(self, w):
        geo = self.geo
        return jnp.stack([self.kind.weights_back(part) for part in w]).reshape(geo.features, -1, *geo.kernel)

    def _places(self, t) -> tuple:
        """Which images, which group and which band round `t` takes."""
        t, band = windows.divided(lax.convert_element_type(t, np.int32), self.geo.bands)
        t, group = windows.divided(t, self.groups)
        return t, group, band

    def group(self, t):
        return self._places(t)[1]

    def _start(self, t, channels: int, step: int, ndim: int) -> tuple:
        images, group, band = self._places(t)
        return (images * np.int32(self.geo.together), group * np.int32(channels), band * np.int32(step)) + (np.int32(0),) * (ndim - 3)

    def _take(self, x, t, channels: int, rows: int, step: int):
        x = lax.dynamic_slice(x, self._start(t, channels, step, x.ndim), (self.geo.together, channels, rows, *x.shape[3:]))
        return x.swapaxes(0, 1) if self.geo.together > 1 else x[0]

    def image(self, x, t):
        return self._take(x, t, self.channels, self.rows, self.step)

    def result(self, g, t):
        return self._take(g, t, self.features, self.out_rows, self.out_rows)

    def _store(self, y, part, t, channels: int, step: int, add: bool = False):
        part = part.swapaxes(0, 1) if self.geo.together > 1 else part[None]
        start = self._start(t, channels, step, y.ndim)
        if add:
            part = part + lax.dynamic_slice(y, start, part.shape)
        return lax.dynamic_update_slice(y, part, start)

    def store_result(self, y, part, t):
        return self._store(y, part, t, self.features, self.out_rows)

    def store_image(self, x, part, t):
        """Bands overlap, so they are added."""
        return self._store(x, part, t, self.channels, self.step, add=self.geo.bands > 1)

    def banded(self, x):
        """The batch as the loop reads it: padded along the first axis when it is read in bands."""
        lo, hi = self.geo.padding[0]
        if self.geo.bands == 1 or not (lo or hi):
            return x
        return lax.pad(x, np.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), (lo, hi, 0)] + [(0, 0, 0)] * (x.ndim - 3))

    def empty_images(self):
        geo = self.geo
        return jnp.zeros((geo.batch, geo.channels, geo.padded[0] if geo.bands > 1 else geo.sizes[0], *geo.sizes[1:]), self.dtype)

    def unbanded(self, x):
        low = self.geo.padding[0][0]
        return lax.slice_in_dim(x, low, low + self.geo.sizes[0], axis=2) if self.geo.bands > 1 else x


def _widened(*arrays) -> list:
    """16-bit floats are multiplied and summed as float32. Converted where a loop takes its part of them, they would be one by one."""
    return [a if a is None or a.dtype.itemsize > 2 else materialized(a.astype(np.float32)) for a in arrays]


def convolve(x, w, geo: Geometry):
    """(N, O, *outs), of 16-bit floats in float32."""
    x, w = _widened(x, w)
    for product in (conv_patches, conv_pointwise):
        if product.serves(geo):
            return product.convolve(x, w, geo)
    if conv_library.serves(geo, x.dtype):
        return conv_library.convolve(x, w, geo)
    if geo.depthwise and set(geo.stride) == {1}:
        return _shifted_copies(x, w, geo)
    loop = Loop(geo, x.dtype)
    x, weights = loop.banded(x), loop.weights(w)

    def body(t, y):
        return loop.store_result(y, loop.kind.result(weights[loop.group(t)], loop.image(x, t)), t)
    y = jnp.zeros((geo.batch, geo.features, *geo.outs), x.dtype)
    return lax.fori_loop(np.int32(0), loop.rounds, body, y)


def _shifted_copies(x, w, geo: Geometry):
    """A depthwise convolution of stride 1: whole rows are added up, so it takes no loop, and the cores share the batch."""
    if min(map(min, geo.padding)) < 0:
        x = lax.pad(x, np.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0)] + [(lo, hi, 0) for lo, hi in geo.padding])
    else:
        x = framed(x, ((0, 0), (0, 0), *geo.padding), w)
    parts = windows.slices(jnp, x.reshape(-1, *x.shape[2:]), geo.kernel, geo.stride, geo.dilation, geo.outs)
    weights = w.reshape(1, geo.channels, -1, geo.taps, *(1,) * len(geo.outs))
    y = sum(part.reshape(-1, geo.channels, 1, *geo.outs) * weights[:, :, :, i] for i, part in enumerate(parts))
    y = y.reshape(-1, geo.features, *geo.outs)
    # XLA would add up all offsets again in each of a norm's reductions, and element by element where the reader has another order of axes
    return materialized(y) if geo.taps > RECOMPUTED else y


def _sums_of_rows(x, g, geo: Geometry):
    """A depthwise convolution's weight gradient: a formula of all of an image's rows per offset along the last axis, which LLVM makes vectors of.
    What it adds up to stays as wide as a row until all images are done: XLA adds up along the last axis element by element."""
    (high, wide), (stride, step), (apart, between), (height, width) = geo.kernel, geo.stride, geo.dilation, geo.outs
    full = width + (-width % LANES if step == 1 else 0)
    (top, bottom), (left, right) = geo.padding
    right += max(0, (full - 1) * step + between * (wide - 1) + 1 - geo.padded[1])

    def body(n, sums):
        image = lax.pad(lax.dynamic_index_in_dim(x, n, 0, False), np.zeros((), x.dtype), [(0, 0, 0), (top, bottom, 0), (left, right, 0)])
        rows = lax.pad(lax.dynamic_index_in_dim(g, n, 0, False), np.zeros((), g.dtype), [(0, 0, 0), (0, 0, 0), (0, full - width, 0)])
        for y in range(height):
            lines = image[:, y * stride:y * stride + (high - 1) * apart + 1:apart]
            sums = [s + rows[:, None, y] * lines[..., i * between:i * between + (full - 1) * step + 1:step] for i, s in enumerate(sums)]
        return tuple(sums)
    sums = tuple(jnp.zeros((geo.channels, high, full), g.dtype) for _ in range(wide))
    sums = lax.fori_loop(np.int32(0), np.int32(geo.batch), body, sums)
    return jnp.stack([s.sum(-1) for s in sums], -1).reshape(geo.channels, 1, high, wide)


def _apart(g, steps: tuple, sizes: tuple):
    """A result's gradient with zeros between its elements: that of the convolution of stride 1, whose other results nobody reads."""
    if math.prod(steps) == 1:
        return g
    places = [(0, n - (m - 1) * step - 1, step - 1) for n, m, step in zip(sizes, g.shape[2:], steps)]
    return materialized(lax.pad(materialized(g), np.zeros((), g.dtype), [(0, 0, 0), (0, 0, 0), *places]))


def gradients(x, w, g, geo: Geometry, needs: tuple) -> list:
    """The gradients for x and for w that `needs` asks for; x or w may be None where nothing reads it."""
    if g.dtype.itemsize == 2:
        return [found.astype(g.dtype) for found in gradients(*_widened(x, w, g), geo, needs)]
    for product in (conv_patches, conv_pointwise):
        if product.serves(geo):
            return product.gradients(x, w, g, geo, needs)
    steps = geo.stride if needs[0] and geo.apart else (1,) * len(geo.sizes)
    back = replace(geo, stride=(1,) * len(steps)).adjoint() if math.prod(steps) > 1 else geo.adjoint()
    if needs[0] and back is not None and (geo.depthwise or conv_library.serves(back, g.dtype)):
        turned = lax.rev(w, range(2, w.ndim))
        dx = convolve(_apart(g, steps, back.sizes), turned if geo.depthwise else turned.swapaxes(0, 1), back)
        return [dx, *gradients(x, None, g, geo, (False, True))] if needs[1] else [dx]
    if needs[1] and geo.low:
        return [*(gradients(x, w, g, geo, (True, False)) if needs[0] else []), _sums_of_rows(x, g, geo)]
    loop = Loop(geo, g.dtype)
    kind = loop.kind
    weights = loop.weights(w) if needs[0] else None
    x = loop.banded(x) if needs[1] else None

    def body(t, state):
        dx, dw = state
        rows, group = kind.rows(loop.result(g, t)), loop.group(t)
        if needs[0]:
            dx = loop.store_image(dx, kind.image_gradient(weights[group], rows), t)
        if needs[1]:
            dw = lax.dynamic_update_slice_in_dim(dw, dw[group][None] + kind.weight_gradient(rows, loop.image(x, t)), group, 0)
        return dx, dw
    dx = loop.empty_images() if needs[0] else None
    dw = jnp.zeros((loop.groups, *kind.gradient_shape), loop.dtype) if needs[1] else None
    dx, dw = lax.fori_loop(np.int32(0), loop.rounds, body, (dx, dw))
    return ([loop.unbanded(dx)] if needs[0] else []) + ([loop.weights_back(dw)] if needs[1] else [])
