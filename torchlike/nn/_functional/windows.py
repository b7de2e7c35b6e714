"""Sliding windows as strided slices, and their adjoint: what pooling, folding and convolutions on the CPU have in common.

XLA's reduce_window and select_and_scatter are slow on the CPU; slices fuse with what is done to them, and NumPy has them too.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax

from ...ops.choosing import choose

FEW = 9  # positions inside a window up to which each is an instruction of its own: XLA takes long to compile more of them, and they run no sooner
_ZERO = (np.int32(0),)


def offsets(kernel: tuple) -> Iterator[tuple]:
    """Every position inside the window, row-major."""
    return itertools.product(*map(range, kernel))


def slices(xp, x, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple) -> Iterator:
    """The slices of padded x, one per position inside the window: its last axes become `sizes`, the windows' positions."""
    lead = (slice(None),) * (x.ndim - len(kernel))
    for offset in offsets(kernel):
        yield x[(*lead, *(slice(o * d, o * d + (n - 1) * s + 1, s) for o, d, n, s in zip(offset, dilation, sizes, stride)))]


def stacked(x, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple):
    """The slices of padded x in one array, (windows' positions inside, *leading axes, *sizes)."""
    if math.prod(kernel) <= FEW:
        return jnp.stack(list(slices(jnp, x, kernel, stride, dilation, sizes)))
    lead, start = x.shape[:x.ndim - len(kernel)], _starts(kernel, stride, dilation)
    blocks = _split(x, stride)

    def body(t, made):
        phase, *at = start(t)
        part = lax.dynamic_slice(blocks, (phase, *_ZERO * len(lead), *at), (1, *lead, *sizes))
        return lax.dynamic_update_slice_in_dim(made, part, t, 0)
    return lax.fori_loop(np.int32(0), np.int32(math.prod(kernel)), body, jnp.zeros((math.prod(kernel), *lead, *sizes), x.dtype))


def spread(xp, parts: Sequence, shape: tuple, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple):
    """The adjoint of `slices`: parts added back into zeros of x's padded shape."""
    lead = tuple(shape[:len(shape) - len(kernel)])
    if xp is np:
        total = np.zeros(shape, parts[0].dtype)
        for view, part in zip(slices(np, total, kernel, stride, dilation, sizes), parts):
            view += part
        return total
    return _added(xp, parts, lead, shape[len(lead):], kernel, stride, dilation, sizes)


def spread_to(xp, place, g, shape: tuple, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple):
    """`spread` where each window's g goes to one position inside it, number `place`, or to all of them (None)."""
    zero = xp.zeros((), g.dtype)
    if stride != kernel or set(dilation) != {1}:
        parts = [g if place is None else choose(xp, place == i, g, zero) for i in range(math.prod(kernel))]
        return spread(xp, parts, shape, kernel, stride, dilation, sizes)
    # windows tile x: every element belongs to one window
    lead = tuple(shape[:len(shape) - len(kernel)])
    here = np.arange(math.prod(kernel), dtype=np.int32).reshape([n for k in kernel for n in (1, k)])
    window = lead + tuple(n for size in sizes for n in (size, 1))
    total = xp.broadcast_to(g.reshape(window), lead + tuple(n for pair in zip(sizes, kernel) for n in pair))
    if place is not None:
        total = choose(xp, here == place.reshape(window), total, zero)
    total = total.reshape(lead + tuple(n * k for n, k in zip(sizes, kernel)))
    return total if total.shape == tuple(shape) else xp.pad(total, [(0, want - have) for want, have in zip(shape, total.shape)])


def _added(xp, parts, lead, spatial, kernel, stride, dilation, sizes):
    """Parts added one after the other into blocks of contiguous elements, see `_split`."""
    wide, start = tuple(-(-n // s) for n, s in zip(spatial, stride)), _starts(kernel, stride, dilation)

    def body(t, total):
        phase, *at = start(t)
        where = phase, *_ZERO * len(lead), *at
        there = lax.dynamic_slice(total, where, (1, *lead, *sizes))
        part = parts[t] if isinstance(t, int) else lax.dynamic_index_in_dim(parts, t, keepdims=False)
        return lax.dynamic_update_slice(total, there + part, where)
    total = xp.zeros((math.prod(stride), *lead, *wide), parts[0].dtype)
    if math.prod(kernel) <= FEW or isinstance(parts, list):
        for t in range(math.prod(kernel)):
            total = body(t, total)
    else:
        total = lax.fori_loop(np.int32(0), np.int32(math.prod(kernel)), body, total)
    return _joined(total, spatial, stride)


def _starts(kernel: tuple, stride: tuple, dilation: tuple) -> Callable:
    """A function of a position's number inside the window: where in the blocks of `_split` its slice starts, (phase, *positions)."""
    def start(t) -> tuple:
        t = t if isinstance(t, int) else lax.convert_element_type(t, np.int32)
        offset = []
        for k in reversed(kernel):
            t, o = _divided(t, k)
            offset.insert(0, o)
        at, phase = [], np.int32(0)
        for o, s, d in zip(offset, stride, dilation):
            n, rest = _divided(o * np.int32(d), s)
            at.append(n)
            phase = phase * np.int32(s) + rest
        return phase, *at
    return start


def _divided(t, n: int) -> tuple:
    return divmod(t, n) if isinstance(t, (int, np.integer)) else (lax.div(t, np.int32(n)), lax.rem(t, np.int32(n))) if n > 1 else (t, np.int32(0))


def _split(x, stride: tuple):
    """Padded x with each strided axis split in (phase, position), so that a window's slices are contiguous: (phases, *leading axes, *positions)."""
    n, m = len(stride), x.ndim - len(stride)
    if math.prod(stride) == 1:
        return x[None]
    lead, spatial = x.shape[:m], x.shape[m:]
    wide = tuple(-(-size // s) for size, s in zip(spatial, stride))
    x = jnp.pad(x, [(0, 0)] * m + [(0, w * s - size) for w, s, size in zip(wide, stride, spatial)])
    x = x.reshape(*lead, *(k for pair in zip(wide, stride) for k in pair))
    order = [*(m + 1 + 2 * i for i in range(n)), *range(m), *(m + 2 * i for i in range(n))]
    return x.transpose(order).reshape(math.prod(stride), *lead, *wide)


def _joined(blocks, spatial: tuple, stride: tuple):
    """The adjoint of `_split`."""
    n, m = len(stride), blocks.ndim - 1 - len(stride)
    lead, wide = blocks.shape[1:1 + m], blocks.shape[1 + m:]
    if math.prod(stride) > 1:
        order = [*range(n, n + m), *(axis for i in range(n) for axis in (n + m + i, i))]
        blocks = blocks.reshape(*stride, *lead, *wide).transpose(order)
    x = blocks.reshape(*lead, *(w * s for w, s in zip(wide, stride)))
    return x[(slice(None),) * len(lead) + tuple(slice(0, size) for size in spatial)]
