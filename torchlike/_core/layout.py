"""Layout: where a tensor's elements lie in its storage (shape, strides, offset), as torch reports it.

XLA lays arrays out as it likes; a Layout is metadata that makes `stride()`, `is_contiguous()`, `view`'s errors and
`data_ptr()` behave as in torch. A tensor whose layout is None is contiguous at offset 0.
"""
from __future__ import annotations

import functools
import math
from typing import NamedTuple


class Layout(NamedTuple):
    shape: tuple
    strides: tuple
    offset: int = 0
    batch = ()  # see Examples


def contiguous_strides(shape) -> tuple:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


@functools.lru_cache(maxsize=1 << 16)  # asked for at each view
def contiguous(shape: tuple) -> Layout:
    return Layout(shape, contiguous_strides(shape), 0)


def is_contiguous(a: Layout) -> bool:
    expected = 1
    if 0 in a.shape:
        return True
    for n, s in zip(reversed(a.shape), reversed(a.strides)):
        if n != 1:
            if s != expected:
                return False
            expected *= n
    return True


class Examples(Layout):
    """Where one example of a batch lies, for batches that are not outermost in memory: `batch` has (level of vmap, size, step) of each such."""

    batch: tuple

    def of(self, layout: Layout) -> Layout:
        """Another layout of the same batches."""
        return _of_batch(layout, self.batch)

    def whole(self, level: int, size: int) -> Layout:
        """The layout of all examples of the batch of a level, which becomes the first dimension."""
        step = next((s for k, _, s in self.batch if k == level), _span(self))
        return _of_batch(Layout((size, *self.shape), (step, *self.strides), self.offset), tuple(b for b in self.batch if b[0] != level))


def _of_batch(layout: Layout, batch: tuple) -> Layout:
    if not batch:
        return Layout(*layout)
    made = Examples(*layout)
    made.batch = batch
    return made


def _span(a: Layout) -> int:
    """A step that leads past all of a, and past the examples of its batches."""
    return max([n * s for n, s in zip(a.shape, a.strides)] + [n * s for _, n, s in a.batch], default=1)


def example(a: Layout, axis: int, level: int) -> Layout | None:
    """Where one example of a batch along `axis` lies; None when it is contiguous at offset 0, which is the first one's."""
    return _example(a, a.batch, axis, level)


@functools.lru_cache(maxsize=4096)
def _example(a: Layout, batch: tuple, axis: int, level: int) -> Layout | None:
    cut = Layout(a.shape[:axis] + a.shape[axis + 1:], a.strides[:axis] + a.strides[axis + 1:], a.offset)
    size, step = a.shape[axis], a.strides[axis]
    if any(s > step for n, s in zip(cut.shape, cut.strides) if n != 1):
        batch = (*batch, (level, size, step))
    return _of_batch(cut, batch) if batch or cut != contiguous(cut.shape) else None


def joined(shape: tuple, inputs: tuple[Layout, ...]) -> Layout | None:
    """`combined`, inside of vmap, too: of the batches that the inputs are examples of."""
    if not any(a.__class__ is Examples for a in inputs):
        return combined(shape, inputs)
    return _joined(shape, tuple((a, a.batch) for a in inputs))


@functools.lru_cache(maxsize=4096)
def _joined(shape: tuple, inputs: tuple) -> Layout | None:
    sizes = {level: n for _, batch in inputs for level, n, _ in batch}
    levels, wholes = sorted(sizes), []
    for a, batch in inputs:
        steps, span, strides = {k: s for k, _, s in batch}, _span(a), []
        for level in reversed(levels):  # what does not say where its batch lies has it outside
            strides.append(steps.get(level, span))
            span *= 1 if level in steps else sizes[level]
        more = len(shape) - len(a.shape)
        wholes.append(Layout((*map(sizes.__getitem__, levels), *(1,) * more, *a.shape), (*reversed(strides), *(0,) * more, *a.strides)))
    made = combined((*map(sizes.__getitem__, levels), *shape), tuple(wholes))
    if made is None:
        return None
    k = len(levels)
    return _of_batch(Layout(shape, made.strides[k:], 0), tuple(zip(levels, made.shape, made.strides)))


def extent(a: Layout) -> int:
    """How many elements of the storage lie up to the end of `a`."""
    return 0 if 0 in a.shape else a.offset + 1 + sum((n - 1) * s for n, s in zip(a.shape, a.strides))


def channels_last_strides(shape) -> tuple:
    """Strides of NCHW (or NCDHW) data stored with channels innermost."""
    order = [0, *range(2, len(shape)), 1]
    inner = contiguous_strides([shape[i] for i in order])
    strides = [0] * len(shape)
    for i, s in zip(order, inner):
        strides[i] = s
    return tuple(strides)


def is_channels_last(a: Layout) -> bool:
    """Whether elements lie as torch.channels_last (4 dims) or channels_last_3d (5 dims) asks."""
    want = channels_last_strides(a.shape)
    return all(n == 1 or s == w for n, s, w in zip(a.shape, a.strides, want))


def suggests_channels_last(a: Layout | None) -> bool:
    """Whether torch takes strides for channels_last: sizes of 1 count by their strides, so contiguous data never is."""
    if a is None or 0 in a.shape or not a.strides[1]:
        return False
    least = 0
    for i in (1, *range(len(a.shape) - 1, 1, -1), 0):
        if a.strides[i] < least or (i == 0 and least == a.strides[1]):
            return False
        least = a.strides[i] * a.shape[i]
    return True


def is_dense(a: Layout) -> bool:
    """Non-overlapping and dense: some permutation of it is contiguous."""
    expected = 1
    for s, n in sorted((s, n) for n, s in zip(a.shape, a.strides) if n != 1):
        if s != expected:
            return False
        expected *= n
    return True


def like(a: Layout) -> Layout | None:
    """The layout of a fresh tensor that preserves a's memory format; None when that is contiguous."""
    if a.__class__ is Examples:
        return joined(a.shape, (a,))
    if a.strides == contiguous(a.shape).strides:
        return None
    return Layout(a.shape, a.strides, 0) if 0 in a.shape or is_dense(a) else combined(a.shape, (a,))


@functools.lru_cache(maxsize=4096)
def combined(shape: tuple, inputs: tuple[Layout, ...]) -> Layout | None:
    """The layout of an elementwise result: dimensions in the order in which its inputs have them in memory; None when contiguous.

    Inputs of one shape that are all channels_last make a result that is. Else the first input in which two dimensions both move decides; among equal strides
    the longer dimension lies outside."""
    if all(a.shape == shape for a in inputs):
        if all(map(is_contiguous, inputs)):
            return None
        if len(shape) == 4 and all(map(is_channels_last, inputs)):
            return Layout(shape, channels_last_strides(shape), 0)
        first = inputs[0]
        if all(a.strides == first.strides for a in inputs) and is_dense(first):
            return Layout(shape, first.strides, 0)
    steps = []
    for a in inputs:
        wide = zip((1,) * (len(shape) - len(a.shape)) + a.shape, (0,) * (len(shape) - len(a.shape)) + a.strides, shape)
        steps.append([0 if n == 1 and m != 1 else s for n, s, m in wide])
    inner = list(reversed(range(len(shape))))  # dimensions from the innermost outwards, by insertion
    for i in range(1, len(shape)):
        k = i
        for j in range(i - 1, -1, -1):
            order = _order(inner[j], inner[k], steps, shape)
            if order < 0:
                break
            if order > 0:
                inner[j], inner[k], k = inner[k], inner[j], j
    strides, step = [0] * len(shape), 1
    for d in inner:
        strides[d] = step
        step *= shape[d]
    made = tuple(strides)
    return None if made == contiguous_strides(shape) else Layout(shape, made, 0)


def _order(d: int, e: int, steps: list, shape: tuple) -> int:
    """-1 where dimension d lies inside e, 1 where it lies outside, 0 where nothing says."""
    for s in steps:
        if s[d] and s[e]:
            if s[d] != s[e]:
                return -1 if s[d] < s[e] else 1
            if shape[d] > shape[e]:
                return 1
    return 0


def view_strides(a: Layout, shape: tuple) -> tuple | None:
    """Strides with which `a` can be seen as `shape` without a copy, or None."""
    if 0 in a.shape:
        return contiguous_strides(shape) if a.shape != shape else a.strides
    strides = [0] * len(shape)
    k = len(shape) - 1
    chunk, base = 1, 1  # elements in the current chunk of mergeable dims, and its innermost stride
    if a.strides:
        base = a.strides[-1]
    for i in range(len(a.shape) - 1, -1, -1):
        chunk *= a.shape[i]
        last = i == 0
        if last or (a.shape[i - 1] != 1 and a.strides[i - 1] != chunk * base):
            covered = 1
            while k >= 0 and (covered < chunk or shape[k] == 1):
                strides[k] = covered * base
                covered *= shape[k]
                k -= 1
            if covered != chunk:
                return None
            if not last:
                chunk, base = 1, a.strides[i - 1]
    if not a.shape:
        strides = [1] * len(shape)
        k = -1
    return tuple(strides) if k == -1 else None


def overlapping(a: Layout | None) -> bool:
    """Whether two elements share a place, as in an expanded tensor."""
    return a is not None and 0 not in a.shape and any(n > 1 and s == 0 for n, s in zip(a.shape, a.strides))


def partly_same(a: Layout, b: Layout) -> bool:
    """Whether two dense windows of one storage share some elements, but are not the same elements in the same places."""
    if not (is_dense(a) and is_dense(b)):
        return False
    n, m = math.prod(a.shape), math.prod(b.shape)
    if a.offset == b.offset and n == m:
        return a.strides != b.strides
    return a.offset < b.offset + m and b.offset < a.offset + n
