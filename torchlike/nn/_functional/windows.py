"""Sliding windows as strided slices, and their adjoint: what pooling, folding and convolutions on the CPU have in common.

XLA's reduce_window and select_and_scatter are slow on the CPU; slices fuse with what is done to them, and NumPy has them too. Where a window
has many positions, compiled programs take their slices in a loop: XLA was minutes at a pool of 13x13.
"""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...ops.choosing import choose
from ...ops.positions import combine_at

NEAR = 1 << 15  # elements that stay in a core's cache
FEW = 9  # positions inside a window up to which each is an instruction of its own: XLA takes long to compile more of them, and they run no sooner


def offsets(kernel: tuple) -> Iterator[tuple]:
    """Every position inside the window, row-major."""
    return itertools.product(*map(range, kernel))


def slices(xp, x, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple) -> Iterator:
    """The slices of padded x, one per position inside the window: its last axes become `sizes`, the windows' positions."""
    for index in _indices(x.ndim - len(kernel), kernel, stride, dilation, sizes):
        yield x[index]


@functools.lru_cache(256)
def _indices(lead: int, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple) -> list[tuple]:
    """Where those slices are, behind `lead` other axes."""
    return [(*(slice(None),) * lead, *(slice(o * d, o * d + (n - 1) * s + 1, s) for o, d, n, s in zip(offset, dilation, sizes, stride)))
            for offset in offsets(kernel)]


@dataclass(frozen=True)
class Window:
    """A sliding window over the last axes of a padded array, whose positions inside are numbered row-major.

    A strided axis is split in (phase, position), so that the slice of each position is a block of contiguous elements: one that a loop may take.
    """

    kernel: tuple
    stride: tuple
    dilation: tuple
    sizes: tuple  # how often the window is somewhere, along each axis

    @property
    def positions(self) -> int:
        return math.prod(self.kernel)

    def along(self, i: int, spatial: tuple) -> Window:
        """The part of the window along one axis, over an array of these sizes."""
        only = lambda values, rest: (*rest[:i], values[i], *rest[i + 1:])  # noqa: E731
        ones = (1,) * len(spatial)
        return Window(only(self.kernel, ones), only(self.stride, ones), only(self.dilation, ones), only(self.sizes, spatial))

    def start(self, t) -> tuple:
        """Where the slice of position t starts in the array that `split` makes, but for the leading axes: (phase, *places)."""
        t = t if isinstance(t, int) else lax.convert_element_type(t, np.int32)
        offset = []
        for k in reversed(self.kernel):
            t, o = divided(t, k)
            offset.insert(0, o)
        places, phase = [], np.int32(0)
        for o, s, d in zip(offset, self.stride, self.dilation):
            place, rest = divided(o * np.int32(d), s)
            places.append(place)
            phase = phase * np.int32(s) + rest
        return phase, *places

    def split(self, x):
        """(phases, *leading axes, *places) of (*leading axes, *spatial)."""
        n, m = len(self.stride), x.ndim - len(self.stride)
        if math.prod(self.stride) == 1:
            return x[None]
        lead, spatial = x.shape[:m], x.shape[m:]
        wide = self._wide(spatial)
        x = jnp.pad(x, [(0, 0)] * m + [(0, w * s - size) for w, s, size in zip(wide, self.stride, spatial)])
        x = x.reshape(*lead, *(k for pair in zip(wide, self.stride) for k in pair))
        order = [*(m + 1 + 2 * i for i in range(n)), *range(m), *(m + 2 * i for i in range(n))]
        return x.transpose(order).reshape(math.prod(self.stride), *lead, *wide)

    def joined(self, blocks, spatial: tuple):
        """The adjoint of `split`."""
        n, m = len(self.stride), blocks.ndim - 1 - len(self.stride)
        lead, wide = blocks.shape[1:1 + m], blocks.shape[1 + m:]
        if math.prod(self.stride) > 1:
            order = [*range(n, n + m), *(axis for i in range(n) for axis in (n + m + i, i))]
            blocks = blocks.reshape(*self.stride, *lead, *wide).transpose(order)
        x = blocks.reshape(*lead, *(w * s for w, s in zip(wide, self.stride)))
        return x[(slice(None),) * len(lead) + tuple(slice(0, size) for size in spatial)]

    def zeros(self, lead: tuple, spatial: tuple, dtype):
        """Nothing yet, as `split` would make it."""
        return jnp.zeros((math.prod(self.stride), *lead, *self._wide(spatial)), dtype)

    def _wide(self, spatial: tuple) -> tuple:
        return tuple(-(-size // s) for size, s in zip(spatial, self.stride))

    def _where(self, blocks, t) -> tuple:
        phase, *places = self.start(t)
        return phase, *[np.int32(0)] * (blocks.ndim - 1 - len(places)), *places

    def take(self, blocks, t):
        """The slice of position t, (*leading axes, *sizes)."""
        return lax.dynamic_slice(blocks, self._where(blocks, t), (1, *blocks.shape[1:blocks.ndim - len(self.sizes)], *self.sizes))[0]

    def add(self, blocks, t, part):
        """Add to the slice of position t."""
        return lax.dynamic_update_slice(blocks, (self.take(blocks, t) + part)[None], self._where(blocks, t))

    def loop(self, f: Callable, carry, first: int = 0):
        """carry = f(t, carry) for each position."""
        return lax.fori_loop(np.int32(first), np.int32(self.positions), f, carry)


def divided(t, n: int) -> tuple:
    """Quotient and remainder of a number or an int32 that a loop counts; known where they can be, for XLA copies what a loop picks by a computed index."""
    if isinstance(t, (int, np.integer)):
        return divmod(t, n)
    return (t, np.int32(0)) if n == 1 else (lax.div(t, np.int32(n)), lax.rem(t, np.int32(n)))


def stacked(xp, x, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple, axis: int, few: int = FEW):
    """The slices of padded x in one array, their positions along a new axis before the windows'; more than `few` are taken in a loop."""
    if xp is np or math.prod(kernel) <= few:
        return xp.stack(list(slices(xp, x, kernel, stride, dilation, sizes)), axis)
    window, part = Window(kernel, stride, dilation, sizes), (*x.shape[:x.ndim - len(kernel)], *sizes)
    blocks = window.split(x)
    made = jnp.zeros((*part[:axis], window.positions, *part[axis:]), x.dtype)
    return window.loop(lambda t, made: lax.dynamic_update_index_in_dim(made, window.take(blocks, t), t, axis), made)


def reduced(xp, combine: Callable, x, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple):
    """The slices of padded x combined by an associative function, many of them along one axis after the other."""
    if math.prod(kernel) <= FEW:
        return functools.reduce(combine, slices(xp, x, kernel, stride, dilation, sizes))
    whole = Window(kernel, stride, dilation, sizes)
    for i in range(len(kernel)):
        window = whole.along(i, x.shape[x.ndim - len(kernel):])
        if xp is np:
            x = functools.reduce(combine, slices(xp, x, window.kernel, window.stride, window.dilation, window.sizes))
            continue
        blocks = window.split(x)
        x = window.loop(lambda t, best: combine(best, window.take(blocks, t)), window.take(blocks, 0), 1)  # noqa: B023  (called at once)
    return x


def spread(xp, parts, shape: tuple, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple, axis: int = 0, few: int = FEW):
    """The adjoint of `slices` and `stacked`: parts, a list or an array, added back into zeros of x's padded shape; more than `few` in a loop."""
    dtype = parts[0].dtype if isinstance(parts, list) else parts.dtype
    if xp is np:
        total = np.zeros(shape, dtype)
        for view, part in zip(slices(np, total, kernel, stride, dilation, sizes), parts if isinstance(parts, list) else np.moveaxis(parts, axis, 0)):
            view += part
        return total
    window, spatial = Window(kernel, stride, dilation, sizes), shape[len(shape) - len(kernel):]
    total = window.zeros(shape[:len(shape) - len(kernel)], spatial, dtype)
    if window.positions > few:
        parts = jnp.stack(parts, axis) if isinstance(parts, list) else parts
        total = window.loop(lambda t, total: window.add(total, t, lax.dynamic_index_in_dim(parts, t, axis, False)), total)
    else:
        for t in range(window.positions):
            total = window.add(total, t, parts[t] if isinstance(parts, list) else lax.index_in_dim(parts, t, axis, False))
    return window.joined(total, spatial)


def spread_to_all(xp, g, shape: tuple, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple):
    """`spread` where each window's g goes to all positions inside it."""
    whole, lead = Window(kernel, stride, dilation, sizes), shape[:len(shape) - len(kernel)]
    if _tiles(whole):
        return _tiled(xp, g, shape, whole)
    if xp is np or whole.positions <= FEW:
        return spread(xp, [g] * whole.positions, shape, kernel, stride, dilation, sizes)
    for i in range(len(kernel)):
        spatial = (*shape[len(lead):len(lead) + i + 1], *sizes[i + 1:])
        window = replace(whole.along(i, spatial), sizes=g.shape[len(lead):])
        total = window.loop(lambda t, total: window.add(total, t, g), window.zeros(lead, spatial, g.dtype))  # noqa: B023  (called at once)
        g = window.joined(total, spatial)
    return g


def better(xp, new, best):
    """Where `new` is the larger one, or NaN."""
    return (new > best) | (new != new)


def best_by_axes(x, where, window: Window) -> list:
    """(maxima, `where` at them) of padded x along one axis after the other, in NumPy, the last first: among equal ones the first in row-major order stays so."""
    where = np.broadcast_to(where, x.shape)
    for i in reversed(range(len(window.kernel))):
        axis = window.along(i, x.shape[x.ndim - len(window.kernel):])
        parts = zip(*(slices(np, a, axis.kernel, axis.stride, axis.dilation, axis.sizes) for a in (x, where)))
        x, where = next(parts)
        for part, places in parts:
            take = better(np, part, x)
            x, where = choose(np, take, part, x), choose(np, take, places, where)
    return [x, where.astype(np.int64)]


def spread_to_best(xp, x, best, g, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple, branches: bool):
    """`spread` where each window's g goes to the first position inside it at which padded x is the window's best; of NaN to the last.

    `branches`: whether a branch costs nothing (a GPU's host waits for what decides it)."""
    window, zero = Window(kernel, stride, dilation, sizes), xp.zeros((), g.dtype)
    if xp is np and window.positions <= FEW and not np.isnan(best).any():
        return _spread_to_first(x, best, g, window)
    n = np.int32(window.positions)

    def ranked(part, best, t):
        """The highest rank tells where: n - 1 - place, above all others n + place of a NaN."""
        t = np.int32(t) if t.__class__ is int else t
        return choose(xp, part != part, n + t, choose(xp, part == best, n - 1 - t, np.int32(0)))

    def place_of(rank):
        return choose(xp, rank >= n, rank - n, n - 1 - rank)
    if _tiles(window) and window.positions > FEW:
        within = tuple(range(1 - 2 * len(kernel), 1, 2))  # the axes of the places inside a window
        whole = x[(..., *(slice(0, size * k) for size, k in zip(sizes, kernel)))]
        apart = whole.reshape(*x.shape[:x.ndim - len(kernel)], *(m for pair in zip(sizes, kernel) for m in pair))
        rank = ranked(apart, xp.expand_dims(best, within), _places(kernel)).max(within)
        return _tiled(xp, g, x.shape, window, place_of(rank))
    if window.positions > FEW:
        lead, spatial = x.shape[:x.ndim - len(kernel)], x.shape[x.ndim - len(kernel):]
    if xp is np and window.positions > FEW:
        planes, size, windows = math.prod(lead), math.prod(spatial), math.prod(sizes)
        _, place = best_by_axes(x, np.arange(size).reshape(spatial), window)
        total = np.zeros((planes, size), np.float32 if g.dtype.itemsize == 2 else g.dtype)
        combine_at(np.add, total, (np.arange(planes)[:, None], place.reshape(planes, windows)), g.reshape(planes, windows).astype(total.dtype, copy=False))
        return total.reshape(x.shape).astype(g.dtype, copy=False)
    if window.positions > FEW:
        blocks = window.split(x)
        place = place_of(window.loop(lambda t, rank: xp.maximum(rank, ranked(window.take(blocks, t), best, t)), xp.zeros(g.shape, np.int32)))
        total = window.zeros(lead, spatial, g.dtype)
        return window.joined(window.loop(lambda t, total: window.add(total, t, jnp.where(place == t, g, zero)), total), spatial)

    def place_in(x, best):
        return place_of(functools.reduce(xp.maximum, (ranked(part, best, t) for t, part in enumerate(slices(xp, x, kernel, stride, dilation, sizes)))))

    def place_without_nan(x, best):
        place = xp.full(g.shape, n - 1, np.int32)
        for t, part in reversed(list(enumerate(slices(xp, x, kernel, stride, dilation, sizes)))[:-1]):
            place = choose(xp, part == best, np.int32(t), place)
        return place
    if xp is np or not branches:
        place = place_in(x, best)
    else:  # what a branch gives XLA's CPU backend keeps; else it would find the place anew for each element of a window
        place = lax.cond((best != best).any(), place_in, place_without_nan, x, best)
    if _tiles(window):
        return _tiled(xp, g, x.shape, window, place)
    return spread(xp, [choose(xp, place == t, g, zero) for t in range(window.positions)], x.shape, kernel, stride, dilation, sizes)


def _spread_to_first(x, best, g, window: Window):
    """`spread_to_best` in NumPy and without NaN: some planes at a time, one position inside the window after the other takes what is left."""
    where, sizes = (window.kernel, window.stride, window.dilation, window.sizes), window.sizes
    spatial, points = x.shape[x.ndim - len(sizes):], math.prod(sizes)
    total = np.zeros(x.shape, g.dtype)
    planes, firsts, given, made = x.reshape(-1, *spatial), best.reshape(-1, *sizes), g.reshape(-1, *sizes), total.reshape(-1, *spatial)
    tiles, zero = _tiles(window), np.zeros((), g.dtype)
    step = max(1, NEAR // max(1, points))
    for i in range(0, len(planes), step):
        first, part = firsts[i:i + step], given[i:i + step]
        left = np.ones(first.shape, np.bool_)
        for there, into in zip(slices(np, planes[i:i + step], *where), slices(np, made[i:i + step], *where)):
            here = there == first
            here &= left
            left ^= here
            if tiles:
                into[...] = choose(np, here, part, zero)
            else:
                into += choose(np, here, part, zero)
    return total


def _tiles(window: Window) -> bool:
    """Whether every element belongs to one window."""
    return window.stride == window.kernel and set(window.dilation) == {1}


def _places(kernel: tuple) -> np.ndarray:
    """The numbers of the positions inside a window, (1, k0, 1, k1, ...)."""
    return np.arange(math.prod(kernel), dtype=np.int32).reshape([n for k in kernel for n in (1, k)])


def _tiled(xp, g, shape: tuple, window: Window, place=None):
    """Each window's g at one position inside it, number `place`, or at all of them, where windows tile."""
    kernel, sizes, lead = window.kernel, window.sizes, tuple(shape[:len(shape) - len(window.kernel)])
    here = _places(kernel)
    apart = lead + tuple(n for size in sizes for n in (size, 1))
    total = xp.broadcast_to(g.reshape(apart), lead + tuple(n for pair in zip(sizes, kernel) for n in pair))
    if place is not None:
        total = choose(xp, here == place.reshape(apart), total, xp.zeros((), g.dtype))
    total = total.reshape(lead + tuple(n * k for n, k in zip(sizes, kernel)))
    return total if total.shape == tuple(shape) else xp.pad(total, [(0, want - have) for want, have in zip(shape, total.shape)])
