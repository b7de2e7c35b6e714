"""Sliding windows as strided slices, and their adjoint: what pooling, folding and convolutions on the CPU have in common.

XLA's reduce_window and select_and_scatter are slow on the CPU; slices fuse with what is done to them, and NumPy has them too.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from jax import lax

from ...ops.choosing import choose


def offsets(kernel: tuple) -> Iterator[tuple]:
    """Every position inside the window, row-major."""
    return itertools.product(*map(range, kernel))


def slices(xp, x, kernel: tuple, stride: tuple, dilation: tuple, sizes: tuple) -> Iterator:
    """The slices of padded x, one per position inside the window: its last axes become `sizes`, the windows' positions."""
    lead = (slice(None),) * (x.ndim - len(kernel))
    for offset in offsets(kernel):
        yield x[(*lead, *(slice(o * d, o * d + (n - 1) * s + 1, s) for o, d, n, s in zip(offset, dilation, sizes, stride)))]


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
    """Parts added one after the other into blocks of contiguous elements: a strided axis is split in (phase, position)."""
    wide = tuple(-(-n // s) for n, s in zip(spatial, stride))
    phases, zeros = math.prod(stride), (0,) * len(lead)
    total = xp.zeros((phases, *lead, *wide), parts[0].dtype)
    for offset, part in zip(offsets(kernel), parts):
        low, phase = [o * d for o, d in zip(offset, dilation)], 0
        for lo, s in zip(low, stride):
            phase = phase * s + lo % s
        start = (phase, *zeros, *(lo // s for lo, s in zip(low, stride)))
        there = lax.dynamic_slice(total, start, (1, *lead, *sizes))
        total = lax.dynamic_update_slice(total, there + part, start)
    if phases > 1:
        n, m = len(wide), len(lead)
        order = [*range(n, n + m), *(axis for i in range(n) for axis in (n + m + i, i))]
        total = total.reshape(*stride, *lead, *wide).transpose(order)
    total = total.reshape(*lead, *(w * s for w, s in zip(wide, stride)))
    return total[(slice(None),) * len(lead) + tuple(slice(0, n) for n in spatial)]
