"""Convolutions in NumPy, for the first tier: matrix products of BLAS over a few images at a time.

What each position of the result meets is gathered into a matrix with a row per input channel and offset inside the kernel, and a column
per position; the result is the weights times it, the weights' gradient the result's gradient times it, transposed, and the input's gradient is
added up from the weights, transposed, times the result's gradient. The matrix is one block that is used again for all images, so that it stays
in the cache: of an image where that has many positions, in bands of rows where it has very many, else of as many images as fill a product.
"""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from . import conv_channels
from .conv_cpu import Geometry

COLUMNS = 192  # of a product, so that BLAS is quick
SMALL, PIECE = 10 ** 6, 256  # multiply-adds up to which OpenBLAS copies no operand, and columns of products that are taken in such pieces
ROOM = 1 << 19  # elements of the matrix
LONG = 1500  # positions from which on that pays for turning the sum
GATHER, SPREAD, TURN = 1, 3, 6  # rough times of copying an element, of adding one at its place, and of turning a weight


@dataclass(frozen=True)
class Blocks:
    """How one convolution is taken: so many images at a time, side by side in one product where they are joined, or so many rows of one."""

    geo: Geometry
    joined: bool

    @functools.cached_property
    def points(self) -> int:
        return math.prod(self.geo.outs)

    @functools.cached_property
    def height(self) -> int:
        """Rows of the matrix."""
        return self.geo.channels * self.geo.taps

    @functools.cached_property
    def by_points(self) -> bool:
        """Whether whole windows are copied, of few positions, and not all that an offset meets."""
        return self.points < self.geo.taps

    @functools.cached_property
    def whole(self) -> bool:
        """Whether the matrix of an image is the image."""
        return self.geo.taps == 1 and set(self.geo.stride) == {1} and not any(map(any, self.geo.padding))

    @functools.cached_property
    def images(self) -> int:
        most = max(1, ROOM // (self.height * self.points))
        if self.joined:
            most = max(most, -(-COLUMNS // self.points))
        return -(-self.geo.batch // -(-self.geo.batch // most))

    @functools.cached_property
    def rows(self) -> int:
        """Of the result's first axis, in a band."""
        first, across = self.geo.outs[0], self.points // self.geo.outs[0]
        if self.images > 1 or self.joined or self.whole or self.height * self.points <= ROOM:
            return first
        rows = max(ROOM // (self.height * across), -(-COLUMNS // across))
        return -(-first // -(-first // min(first, rows)))

    def __iter__(self) -> Iterator[tuple[slice, slice]]:
        """Images and rows of each block."""
        for i in range(0, self.geo.batch, self.images):
            for r in range(0, self.geo.outs[0], self.rows):
                yield slice(i, min(i + self.images, self.geo.batch)), slice(r, min(r + self.rows, self.geo.outs[0]))

    @functools.cached_property
    def offsets(self) -> list[tuple]:
        """For each offset inside the kernel, along each axis: the first and the last but one position of the result that meets the input there,
        and the place in the input that position 0 would meet."""
        g = self.geo
        axes = [[(max(0, -(-(lo - k * d) // s)), min(out, (n - 1 + lo - k * d) // s + 1), k * d - lo) for k in range(kernel)]
                for n, kernel, s, d, (lo, _), out in zip(g.sizes, g.kernel, g.stride, g.dilation, g.padding, g.outs)]
        return [(tap, *found) for tap, found in zip(itertools.product(*map(range, g.kernel)), itertools.product(*axes))]

    @functools.cached_property
    def _known(self) -> dict:
        return {}

    def pieces(self, rows: slice) -> list[tuple]:
        """(where in the matrix's axes (channels, *kernel, images, *positions), where in the input's (channels, images, *places)) of each copy."""
        found = self._known.get((rows.start, rows.stop))
        if found is None:
            found = self._known[rows.start, rows.stop] = list(self._windows() if self.by_points else self._shifted(rows))
        return found

    def _shifted(self, rows: slice) -> Iterator[tuple]:
        every = slice(None)
        for tap, *axes in self.offsets:
            (first, last, place), *rest = axes
            axes = [(max(first, rows.start), min(last, rows.stop), place), *rest]
            if all(first < last for first, last, _ in axes):
                begin = (rows.start, *(0,) * len(rest))
                yield ((every, *tap, every, *(slice(first - b, last - b) for (first, last, _), b in zip(axes, begin))),
                       (every, every, *(slice(p + first * s, p + (last - 1) * s + 1, s) for (first, last, p), s in zip(axes, self.geo.stride))))

    def _windows(self) -> Iterator[tuple]:
        every, g = slice(None), self.geo
        for point in itertools.product(*map(range, g.outs)):
            taps, places = [], []
            for p, n, k, s, d, (lo, _) in zip(point, g.sizes, g.kernel, g.stride, g.dilation, g.padding):
                first, last = max(0, -(-(lo - p * s) // d)), min(k, (n - 1 + lo - p * s) // d + 1)
                taps.append(slice(first, last))
                places.append(slice(p * s + first * d - lo, p * s + (last - 1) * d - lo + 1, d))
            if all(t.start < t.stop for t in taps):
                yield (every, *taps, every, *point), (every, every, *places)

    def clipped(self, rows: slice) -> bool:
        """Whether some offset meets no input in some of these rows."""
        return any(first > rows.start or last < rows.stop for _, (first, last, _), *_ in self.offsets)


@functools.lru_cache(2048)
def _blocks(geo: Geometry, joined: bool | None = None) -> Blocks:
    """With images joined, if it is not said, where one has too few positions for a product."""
    points = math.prod(geo.outs)
    return Blocks(geo, points < COLUMNS or points < geo.taps if joined is None else joined or points < geo.taps)


class Matrix:
    """The block that images are gathered into; what never meets the input stays zero."""

    def __init__(self, blocks: Blocks, dtype, make=np.zeros):
        g, self.blocks = blocks.geo, blocks
        positions, n = (blocks.rows, *g.outs[1:]), len(g.sizes)
        width = math.prod(positions)
        if blocks.by_points:  # whole windows are rows in memory
            block = make((blocks.images, *positions, g.channels, *g.kernel), dtype)
            self.axes = block.transpose(*range(n + 1, 2 * n + 2), *range(n + 1))
            self.products = block.reshape(blocks.images * width, g.groups, -1).transpose(1, 2, 0)
        elif blocks.joined:
            self.axes = make((g.channels, *g.kernel, blocks.images, *positions), dtype)
            self.products = self.axes.reshape(g.groups, -1, blocks.images * width)
        else:
            block = make((blocks.images, g.channels, *g.kernel, *positions), dtype)
            self.axes = np.moveaxis(block, 0, n + 1)
            self.products = block.reshape(blocks.images, g.groups, -1, width)
        self.across = width // blocks.rows
        self.before: slice | None = None

    def part(self, images: slice, rows: slice) -> tuple:
        """A block that may be a smaller one: for products, ([images,] groups, rows of the matrix, positions), and by axes."""
        n, r = images.stop - images.start, rows.stop - rows.start
        axes = self.axes[(slice(None),) * (len(self.blocks.geo.kernel) + 1) + (slice(0, n), slice(0, r))]
        return (self.products[:, :, :n * r * self.across] if self.blocks.joined else self.products[:n, :, :, :r * self.across]), axes

    def gather(self, x: np.ndarray, images: slice, rows: slice) -> np.ndarray:
        """The block of these images, for products."""
        products, axes = self.part(images, rows)
        if self.before is not None and self.before != rows and (self.blocks.clipped(rows) or self.blocks.clipped(self.before)):
            axes[...] = 0
        self.before = rows
        x = x[images].swapaxes(0, 1)
        for into, places in self.blocks.pieces(rows):
            axes[into] = np.moveaxis(x[places], 1, -1) if self.blocks.by_points else x[places]
        return products

    def spread(self, x: np.ndarray, images: slice, rows: slice) -> None:
        """Add the block to x at the places that it would be gathered from."""
        _, axes = self.part(images, rows)
        x = x[images].swapaxes(0, 1)
        for into, places in self.blocks.pieces(rows):
            x[places] += np.moveaxis(axes[into], -1, 1) if self.blocks.by_points else axes[into]


def _multiply(w: np.ndarray, block: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """np.matmul of weights and a block; of few weights, some columns at a time."""
    columns, work = block.shape[-1], w.shape[-1] * w.shape[-2]
    if work * PIECE > SMALL or work * columns <= SMALL:
        return np.matmul(w, block, out=out)
    if out is None:
        out = np.empty((*block.shape[:-2], w.shape[-2], columns), block.dtype)
    even = columns // PIECE * PIECE
    pieces = lambda x: np.moveaxis(x[..., :even].reshape(*x.shape[:-1], -1, PIECE), -2, -3)  # noqa: E731
    np.matmul(w[..., None, :, :], pieces(block), out=pieces(out))
    if even < columns:
        np.matmul(w, block[..., even:], out=out[..., even:])
    return out


def _of_block(y: np.ndarray, blocks: Blocks, images: slice, rows: slice) -> np.ndarray:
    """A block's part of a contiguous result (N, O, *outs), as the product makes it: a copy where images are joined."""
    geo = blocks.geo
    across = blocks.points // geo.outs[0]
    part = y[images].reshape(-1, geo.groups, geo.features // geo.groups, blocks.points)
    if blocks.joined:
        return part.transpose(1, 2, 0, 3).reshape(*part.shape[1:3], -1) if len(part) > 1 else part[0]
    return part[..., rows.start * across:rows.stop * across]


def convolve(x: np.ndarray, w: np.ndarray, geo: Geometry) -> np.ndarray:
    """(N, O, *outs) of x (N, C, *sizes) and w (O, C / groups, *kernel), in their dtype."""
    if not x.size or not w.size or not math.prod(geo.outs):
        return np.zeros((geo.batch, geo.features, *geo.outs), x.dtype)
    if conv_channels.serves(geo):
        return conv_channels.convolve(x, w, geo)
    y = np.empty((geo.batch, geo.features, *geo.outs), x.dtype)
    w, blocks = w.reshape(geo.groups, geo.features // geo.groups, -1), _blocks(geo)
    if blocks.whole and not blocks.joined:
        _multiply(w, x.reshape(geo.batch, geo.groups, -1, blocks.points), y.reshape(geo.batch, *w.shape[:2], blocks.points))
        return y
    matrix = Matrix(blocks, x.dtype)
    for images, rows in blocks:
        block = matrix.gather(x, images, rows)
        if blocks.joined:
            y[images] = _multiply(w, block).reshape(geo.features, -1, *geo.outs).swapaxes(0, 1)
        else:
            _multiply(w, block, _of_block(y, blocks, images, rows))
    return y


def of_input(w: np.ndarray, g: np.ndarray, geo: Geometry) -> np.ndarray:
    """The gradient of x, or the transposed convolution of g."""
    shape = (geo.batch, geo.channels, *geo.sizes)
    if not g.size or not w.size:
        return np.zeros(shape, g.dtype)
    if conv_channels.serves(geo):
        return conv_channels.of_input(w, g, geo)
    g = np.ascontiguousarray(g)
    blocks, flat = _blocks(geo), w.reshape(geo.groups, geo.features // geo.groups, -1).swapaxes(1, 2)
    if blocks.whole and not blocks.joined:
        x = np.empty(shape, g.dtype)
        _multiply(flat, g.reshape(geo.batch, geo.groups, -1, blocks.points), x.reshape(geo.batch, geo.groups, -1, blocks.points))
        return x
    adjoint = geo.adjoint()
    if adjoint is not None and not blocks.whole and _turns(geo, adjoint):
        return convolve(g, np.flip(w, tuple(range(2, w.ndim))).swapaxes(0, 1), adjoint)
    x = np.zeros(shape, g.dtype)
    matrix = Matrix(blocks, g.dtype, np.empty)
    for images, rows in blocks:
        _multiply(flat, _of_block(g, blocks, images, rows), matrix.part(images, rows)[0])
        matrix.spread(x, images, rows)
    return x


def _turns(geo: Geometry, adjoint: Geometry) -> bool:
    """Whether the gradient of the input is sooner there as a convolution with turned weights."""
    count = geo.batch * geo.taps
    return (GATHER * count * geo.features * math.prod(adjoint.outs) + TURN * geo.features * geo.channels * geo.taps
            < SPREAD * count * geo.channels * math.prod(geo.outs))


def of_weight(x: np.ndarray, g: np.ndarray, geo: Geometry) -> np.ndarray:
    """The gradient of w, (O, C / groups, *kernel)."""
    per = geo.channels // geo.groups
    shape = (geo.features, per, *geo.kernel)
    if not g.size or not x.size:
        return np.zeros(shape, g.dtype)
    if conv_channels.serves(geo):
        made = conv_channels.of_weight(x, g, geo)
        if np.isfinite(made).all():  # else zeros may have met what is not
            return made
    g = np.ascontiguousarray(g)
    points = math.prod(geo.outs)
    blocks = _blocks(geo, points < 2 * per * geo.taps and per * geo.taps * geo.groups * points <= ROOM or None)
    matrix = None if blocks.whole and not blocks.joined else Matrix(blocks, x.dtype)
    turned = geo.features // geo.groups < per * geo.taps and geo.batch * points >= LONG  # the longer side first, which BLAS does sooner
    total = None
    for images, rows in blocks:
        block = x[images].reshape(-1, geo.groups, per, points) if matrix is None else matrix.gather(x, images, rows)
        part = _of_block(g, blocks, images, rows)
        part = np.matmul(block, part.swapaxes(-1, -2)) if turned else np.matmul(part, block.swapaxes(-1, -2))
        if not blocks.joined:
            part = part[0] if len(part) == 1 else part.sum(0)
        if total is None:
            total = part
        else:
            total += part
    return np.ascontiguousarray(total.swapaxes(-1, -2) if turned else total).reshape(shape)
