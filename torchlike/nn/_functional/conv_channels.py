"""Convolutions of each channel by itself (depthwise) in NumPy, for the first tier.

A padded image is laid out flat, by its phases where the convolution has a stride, so that what an offset inside the kernel meets is one run of
elements in memory, from the first position of the first channel's result to the last of the last one's: the result is a sum of such runs times
weights, which are spread out as far once for all images, and the gradient of a weight the inner product of a channel's run with the result's
gradient. What lies between the rows of the result is computed as well and thrown away.
"""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np

from .conv_cpu import Geometry

NEAR = 1 << 15  # elements that stay in a core's cache
WASTE = 4  # as many elements of a padded image for each of the result at most


def serves(geo: Geometry) -> bool:
    """Whether each channel has one filter, and most of what is computed is not thrown away."""
    return geo.depthwise and geo.features == geo.channels and math.prod(geo.padded) <= WASTE * math.prod(geo.stride) * math.prod(geo.outs)


class _Flat:
    """Where everything lies: phases of (*wide) elements for each channel."""

    def __init__(self, geo: Geometry):
        g, self.geo = geo, geo
        self.wide = tuple(max((n - 1 + lo) // s + 1, out + d * (k - 1) // s)
                          for n, k, s, d, (lo, _), out in zip(g.sizes, g.kernel, g.stride, g.dilation, g.padding, g.outs))
        self.size = math.prod(self.wide)
        steps = [math.prod(self.wide[i + 1:]) for i in range(len(self.wide))]
        self.run = sum((out - 1) * step for out, step in zip(g.outs, steps)) + 1
        self.taps = []  # for each offset: its phase, and where its run begins there
        for tap in itertools.product(*map(range, g.kernel)):
            phase = functools.reduce(lambda t, x: t * x[2] + x[0] * x[1] % x[2], zip(tap, g.dilation, g.stride), 0)
            self.taps.append((phase, sum(t * d // s * step for t, d, s, step in zip(tap, g.dilation, g.stride, steps))))
        self.phases = []  # for each: which of its elements are the input's, and which of that
        for phase in itertools.product(*map(range, g.stride)):
            into, places = [], []
            for a, n, s, (lo, _) in zip(phase, g.sizes, g.stride, g.padding):
                first, last = max(0, -((a - lo) // s)), (n - 1 + lo - a) // s + 1
                into.append(slice(first, max(first, last)))
                places.append(slice(first * s + a - lo, max(0, (last - 1) * s + a - lo + 1), s))
            self.phases.append(((..., *into), (..., *places)))
        one = len(self.phases) * self.size
        self.images = min(g.batch, max(1, NEAR // (one * g.channels)))
        self.channels = min(g.channels, max(1, NEAR // one))

    def chunks(self, dtype) -> Iterator[tuple[tuple, _Room]]:
        """Which images and channels at a time, and room for them."""
        rooms: dict = {}
        for c in range(0, self.geo.channels, self.channels):
            channels = min(self.channels, self.geo.channels - c)
            for i in range(0, self.geo.batch, self.images):
                shape = min(self.images, self.geo.batch - i), channels
                if shape not in rooms:
                    rooms[shape] = _Room(self, shape, dtype)
                yield (slice(i, i + shape[0]), slice(c, c + channels)), rooms[shape]


class _Room:
    """Arrays for some images and channels, used again for others."""

    def __init__(self, flat: _Flat, shape: tuple, dtype):
        self.flat, self.shape = flat, shape
        self.phases = np.zeros((len(flat.phases), *shape, *flat.wide), dtype)
        self.result = np.zeros((*shape, *flat.wide), dtype)
        self.extent = (math.prod(shape) - 1) * flat.size + flat.run
        self.term = np.empty(self.extent, dtype)
        self.spread: tuple | None = None  # which channels' weights, and they

    def weights(self, w: np.ndarray, channels: slice) -> np.ndarray:
        """(offsets, elements): each channel's weights, as often as it has elements."""
        if self.spread is None or self.spread[0] != channels:
            spread = np.broadcast_to(w[channels].T[:, None, :, None], (w.shape[1], *self.shape, self.flat.size))
            self.spread = channels, spread.reshape(w.shape[1], -1)[:, :self.extent]
        return self.spread[1]

    def lay(self, x: np.ndarray) -> None:
        for block, (into, places) in zip(self.phases, self.flat.phases):
            block[into] = x[places]

    def runs(self) -> Iterator[np.ndarray]:
        """What each offset meets, in all channels and images."""
        laid = self.phases.reshape(len(self.phases), -1)
        for phase, begin in self.flat.taps:
            yield laid[phase, begin:begin + self.extent]

    def part(self) -> np.ndarray:
        """Where the result lies."""
        return self.result[(..., *map(slice, self.flat.geo.outs))]


@functools.lru_cache(1024)
def _flat(geo: Geometry) -> _Flat:
    return _Flat(geo)


def convolve(x: np.ndarray, w: np.ndarray, geo: Geometry) -> np.ndarray:
    w, y = w.reshape(geo.channels, geo.taps), np.empty((geo.batch, geo.channels, *geo.outs), x.dtype)
    for where, room in _flat(geo).chunks(x.dtype):
        room.lay(x[where])
        sums = room.result.reshape(-1)[:room.extent]
        for t, (run, weight) in enumerate(zip(room.runs(), room.weights(w, where[1]))):
            if t:
                sums += np.multiply(run, weight, out=room.term)
            else:
                np.multiply(run, weight, out=sums)
        y[where] = room.part()
    return y


def of_input(w: np.ndarray, g: np.ndarray, geo: Geometry) -> np.ndarray:
    w, x = w.reshape(geo.channels, geo.taps), np.zeros((geo.batch, geo.channels, *geo.sizes), g.dtype)
    for where, room in _flat(geo).chunks(g.dtype):
        room.part()[...] = g[where]  # zeros stay between its rows
        room.phases[...] = 0
        given = room.result.reshape(-1)[:room.extent]
        for run, weight in zip(room.runs(), room.weights(w, where[1])):
            run += np.multiply(given, weight, out=room.term)
        for block, (into, places) in zip(room.phases, room.flat.phases):
            x[where][places] = block[into]
    return x


def of_weight(x: np.ndarray, g: np.ndarray, geo: Geometry) -> np.ndarray:
    made = np.zeros((geo.channels, geo.taps), x.dtype)
    for where, room in _flat(geo).chunks(x.dtype):
        room.lay(x[where])
        room.part()[...] = g[where]
        size, run = room.flat.size, room.flat.run
        laid, given = room.phases.reshape(-1, *room.shape, 1, size), room.result.reshape(*room.shape, size, 1)[..., :run, :]
        for t, (phase, begin) in enumerate(room.flat.taps):
            made[where[1], t] += np.matmul(laid[phase, ..., begin:begin + run], given)[..., 0, 0].sum(0)
    return made.reshape(geo.channels, 1, *geo.kernel)
