"""Spatial transformers: affine_grid and grid_sample (Jaderberg et al. 2015)."""
from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from ..._arguments import factory_size
from ..._core.dtype import FLOAT, from_numpy_dtype
from ..._core.history import warn
from ..._core.registry import Op
from ..._public import public
from ..._tensor import Tensor, apply
from ...ops.materializing import once
from ...ops.ranges import _linspace
from .common import need, not_implemented, wide
from .resampling_maps import _cubic_slopes, _cubic_weights

# -- affine_grid -------------------------------------------------------------------------------------------------------------


def _axis(n: int, align: bool, kind: np.dtype) -> np.ndarray:
    """Rounded as torch rounds them: where a map moves nothing, the last bit decides between which pixels a position is."""
    if n <= 1:
        return np.zeros(n, kind)
    points = _linspace(np, -1, 1, n, from_numpy_dtype(kind), None)
    return points if align else points * np.asarray(n - 1, kind) / np.asarray(n, kind)


def base_grid(xp, size: tuple, align: bool, kind) -> np.ndarray:
    """Coordinates of all positions, and a one: (H * W, 3) or (D * H * W, 4)."""
    axes = xp.meshgrid(*(_axis(s, align, kind) for s in size[2:]), indexing="ij")
    return xp.stack([*reversed(axes), xp.ones(size[2:], kind)], -1).reshape(-1, len(size) - 1)


def _affine_grid(xp, theta, size, align):
    kind = theta.dtype
    made = wide(base_grid(xp, size, align, kind)) @ wide(theta).swapaxes(1, 2)
    return made.reshape(size[0], *size[2:], len(size) - 2).astype(kind)


def _affine_grid_vjp(xp, g, size, align):
    """Reads nothing but the gradient: a second backward is possible, as in torch."""
    rows = wide(g).reshape(size[0], -1, len(size) - 2)
    return rows.swapaxes(1, 2) @ wide(base_grid(xp, size, align, g.dtype))


def _affine_grid_shape(theta, size, align):
    n = len(size) - 2
    if n not in (2, 3):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    if theta.ndim != 3 or theta.shape[0] != size[0] or theta.shape[2] != n + 1:
        batch = [theta.shape[0], theta.shape[2], theta.shape[1]] if theta.ndim == 3 else list(theta.shape)
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {n + 1}] but got: {batch[:2]}.")
    if theta.shape[1] != n:
        raise RuntimeError(f"shape '{[size[0], *size[2:], n]}' is invalid for input of size {size[0] * math.prod(size[2:]) * theta.shape[1]}")
    return (size[0], *size[2:], n), theta.dtype


AFFINE_GRID = Op("affine_grid_generator", _affine_grid, shape=_affine_grid_shape, vjp=_affine_grid_vjp)
AFFINE_GRID.backward.torch_name = "TransposeBackward0"


@public(method=False)
def affine_grid_generator(theta: Tensor, size, align_corners: bool) -> Tensor:
    """affine_grid without its checks."""
    return apply(AFFINE_GRID, (theta,), (factory_size("affine_grid_generator", (tuple(size),)), bool(align_corners)))


def affine_grid(theta: Tensor, size, align_corners: bool | None = None) -> Tensor:
    """Sampling positions of affine maps: theta (N, 2, 3) and size (N, C, H, W) to (N, H, W, 2); (N, 3, 4) in three dimensions."""
    if align_corners is None:
        warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True "
             "if the old behavior is desired. See the documentation of grid_sample for details.")
        align_corners = False
    if theta.dtype.category != FLOAT:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
                                  f"{size}.")
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (n, n + 1):
        raise ValueError(f"Expected a batch of {n}D affine matrices of shape {'Nx2x3' if n == 2 else 'Nx3x4'} for size {size}. Got "
                         f"{theta.size()}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners and min(size[2:]) == 1:
        warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an intended "
             "use case of affine_grid. See the documentation of affine_grid for details.")
    return affine_grid_generator(theta, size, align_corners)


_BLOCK = 1 << 14  # outputs whose places and weights stay in the cache
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}  # places along one dimension


# -- grid_sample -------------------------------------------------------------------------------------------------------------


def _unnormalized(xp, c, n: int, align: bool):
    """Coordinates -1..1 as positions in 0..n-1."""
    if align:
        return (c + 1) * ((n - 1) / 2)
    if c.dtype == np.float32:  # rounded once, as compilers have it: a position near a whole number decides which pixels it is between, backward too
        return ((c + 1).astype(np.float64) * (n / 2) - 0.5).astype(np.float32)
    return (c + 1) * (n / 2) - 0.5


def _reflected(xp, at, n: int, align: bool):
    low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
    span = high - low
    if span <= 0:
        return xp.zeros_like(at)
    away = xp.abs(at - low)
    turns = xp.floor(away / span)
    rest = away - turns * span
    return xp.where(turns % 2 == 0, rest + low, span - rest + low)


def _bounded(xp, at, n: int, padding: str, align: bool):
    if padding == "reflection":
        at = _reflected(xp, at, n, align)
    return at if padding == "zeros" else xp.where(at > 0, xp.where(at < n - 1, at, n - 1), 0)  # at a border no gradient, and NaN goes to 0, as in torch


def _taps(xp, at, n, mode, padding, align):
    """(position, weight) pairs along one dimension."""
    if mode == "bicubic":
        floor = xp.floor(at)
        weights = _cubic_weights(at - floor)
        return [(_bounded(xp, floor + (k - 1), n, padding, align), w) for k, w in enumerate(weights)]
    at = _bounded(xp, at, n, padding, align)
    if mode == "nearest":
        return [(xp.round(at), None)]
    floor = xp.floor(at)
    part = at - floor
    return [(floor, 1 - part), (floor + 1, part)]


def _corners(xp, positions, shape, mode, padding, align) -> list[tuple]:
    """What each output is a sum of: (place among the input's pixels, or behind them where it is outside; weight), arrays (N, outputs)."""
    sets = []
    for d, n in enumerate(shape):
        taps = _taps(xp, _unnormalized(xp, positions[..., len(shape) - 1 - d], n, align), n, mode, padding, align)
        sets.append([(xp.where((i >= 0) & (i <= n - 1), i, -1).astype(np.int32), w) for i, w in taps])  # NaN is outside
    found = []
    for corner in np.ndindex(*(len(s) for s in sets)):
        taps = [s[k] for s, k in zip(sets, corner)]
        at, inside = taps[0][0], taps[0][0] >= 0
        for (i, _), n in zip(taps[1:], shape[1:]):
            at, inside = at * n + i, inside & (i >= 0)
        found.append((xp.where(inside, at, math.prod(shape)), None if taps[0][1] is None else math.prod(w for _, w in taps)))
    return found


def _sample(xp, x, grid, mode, padding, align):
    n, channels, outputs = *x.shape[:2], grid.shape[1:-1]
    if not n * channels * math.prod(outputs):
        return xp.zeros((n, channels, *outputs), x.dtype)
    positions, how = wide(grid).reshape(grid.shape[0], -1, grid.shape[-1]), (x.shape[2:], mode, padding, align)
    if xp is np:
        if n > 1 and grid.strides[0] == 0:  # one grid for a batch: as if its images were channels
            x, positions = x.reshape(1, -1, *x.shape[2:]), positions[:1]
        return _sampled(x, positions, *how).reshape(n, channels, *outputs)
    pixels, total = _pixels(xp, x), None
    for at, w in _corners(xp, positions, *how):
        part = xp.take_along_axis(pixels, at[..., None], 1)
        part = part if w is None else part * w[..., None]
        total = part if total is None else total + part
    return xp.moveaxis(total, 2, 1).reshape(n, channels, *outputs).astype(x.dtype)


def _pixels(xp, x):
    """(N, pixels, channels), one of zeros behind them."""
    pixels = xp.moveaxis(wide(x).reshape(*x.shape[:2], -1), 1, 2)
    return xp.concatenate([pixels, xp.zeros_like(pixels[:, :1])], 1)


def _sampled(x: np.ndarray, positions: np.ndarray, shape: tuple, mode: str, padding: str, align: bool) -> np.ndarray:
    """(N, C, outputs) in NumPy, some outputs at a time: places and weights take many times the memory of the results."""
    count, corners = positions.shape[1], _TAPS[mode] ** len(shape)
    few = 2 * corners * count < math.prod(shape)
    pixels = wide(x).reshape(*x.shape[:2], -1) if few else np.ascontiguousarray(_pixels(np, x))
    made = np.empty((*x.shape[:2], count), x.dtype)
    for start in range(0, count, _BLOCK):
        found = _corners(np, positions[:, start : start + _BLOCK], shape, mode, padding, align)
        if few:
            made[..., start : start + _BLOCK] = _picked(pixels, found)
            continue
        for k, rows in enumerate(pixels):
            part = rows.take(found[0][0][k], 0) if mode == "nearest" else _corner_matrix([(at[k], w[k]) for at, w in found], len(rows), rows.dtype) @ rows
            made[k, :, start : start + _BLOCK] = part.T
    return made


def _picked(images: np.ndarray, corners: list[tuple]) -> np.ndarray:
    """The same where few pixels of an image are read: without copying it."""
    behind, total = images.shape[-1], None
    for at, w in corners:
        part = np.stack([image.take(places, 1, mode="clip") for image, places in zip(images, at)])
        outside = (at == behind)[:, None]
        if outside.any():
            np.copyto(part, 0, where=outside)
        part = part if w is None else part * w[:, None]
        total = part if total is None else total + part
    return total


def _corner_matrix(corners: list[tuple], pixels: int, dtype: np.dtype):
    """The (outputs, pixels) sparse matrix of an image's corners. By products with it sums take one pass over memory; NumPy's would several for each corner."""
    from scipy.sparse import csr_array
    n = len(corners[0][0])
    at, weights = np.empty((n, len(corners)), np.int32), np.ones((n, len(corners)), dtype)
    for k, (place, w) in enumerate(corners):
        at[:, k] = place
        if w is not None:
            weights[:, k] = w
    return csr_array((weights.ravel(), at.ravel(), np.arange(0, at.size + 1, len(corners), dtype=np.int32)), (n, pixels))


def _sample_shape(x, grid, *statics):
    return (*x.shape[:2], *grid.shape[1:-1]), x.dtype


# Its derivative is written out: jax.vjp would be traced anew for each shape, which takes 150 ms of a volume's eight corners.


def _bounded_slope(xp, at, n: int, padding: str, align: bool):
    """The derivative of _bounded."""
    if padding == "zeros":
        return xp.ones_like(at)
    slope = 1
    if padding == "reflection":
        low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
        if high <= low:
            return xp.zeros_like(at)
        back = (xp.floor(xp.abs(at - low) / (high - low)) % 2 == 1) != (at < low)
        slope, at = xp.where(back, -1, 1), _reflected(xp, at, n, align)
    return xp.where((at > 0) & (at < n - 1), slope, 0).astype(at.dtype)


def _slopes(xp, at, n: int, mode: str, padding: str, align: bool) -> list:
    """Derivatives of the weights that _taps gives, by the position."""
    if mode == "bicubic":
        return _cubic_slopes(at - xp.floor(at))
    slope = _bounded_slope(xp, at, n, padding, align)
    return [-slope, slope]


def _weight_slopes(xp, positions, shape: tuple, mode: str, padding: str, align: bool) -> list[list]:
    """Derivatives of each corner's weight by each of the coordinates, in the grid's order."""
    sets = []
    for d, n in enumerate(shape):
        at = _unnormalized(xp, positions[..., len(shape) - 1 - d], n, align)
        scale = at.dtype.type((n - 1 if align else n) / 2)
        sets.append([(w, s * scale) for (_, w), s in zip(_taps(xp, at, n, mode, padding, align), _slopes(xp, at, n, mode, padding, align))])
    found = []
    for corner in np.ndindex(*(len(s) for s in sets)):
        taps = [s[k] for s, k in zip(sets, corner)]
        found.append([math.prod(slope if d == e else w for e, (w, slope) in enumerate(taps)) for d in reversed(range(len(shape)))])
    return found


def _sample_vjp(xp, x, grid, g, mode, padding, align, needs):
    n, channels, count = *x.shape[:2], math.prod(grid.shape[1:-1])
    if not n * channels * count:
        return xp.zeros_like(x), xp.zeros_like(grid)
    positions, how = wide(grid).reshape(n, count, -1), (x.shape[2:], mode, padding, align)
    needs = needs[0], needs[1] and mode != "nearest"
    rows = xp.moveaxis(wide(g).reshape(n, channels, count), 1, 2)
    to_pixels, to_grid = (_gradients_in_blocks if xp is np else _gradients)(xp, x, positions, rows, how, needs)
    if to_pixels is not None:
        to_pixels = xp.moveaxis(to_pixels[:, :-1], 1, 2).reshape(x.shape).astype(x.dtype)
    return to_pixels, xp.zeros_like(grid) if to_grid is None else to_grid.reshape(grid.shape).astype(grid.dtype)


def _gradients(xp, x, positions, rows, how: tuple, needs: tuple) -> tuple:
    """Of the (N, pixels + 1, channels) that _pixels gives and of the (N, outputs, dimensions) positions, from the outputs' `rows`."""
    corners, pixels = _corners(xp, positions, *how), _pixels(xp, x)
    to_pixels = to_grid = None
    if needs[0]:
        to_pixels, images = xp.zeros_like(pixels), np.arange(len(pixels))[:, None]
        for at, w in corners:
            to_pixels = to_pixels.at[images, at].add(rows if w is None else rows * w[..., None], mode="promise_in_bounds")
    if needs[1]:
        dots = [(rows * xp.take_along_axis(pixels, at[..., None], 1)).sum(-1) for at, _ in corners]
        by_coordinate = zip(*_weight_slopes(xp, positions, *how))
        to_grid = xp.stack([sum(dot * slope for dot, slope in zip(dots, slopes)) for slopes in by_coordinate], -1)
    return to_pixels, to_grid


def _gradients_in_blocks(xp, x: np.ndarray, positions: np.ndarray, rows: np.ndarray, how: tuple, needs: tuple) -> tuple:
    """The same in NumPy, some outputs at a time, those of the pixels by products with sparse matrices: see _sampled."""
    pixels = np.ascontiguousarray(_pixels(np, x)) if needs[1] else None
    to_pixels = np.zeros((len(x), math.prod(x.shape[2:]) + 1, x.shape[1]), rows.dtype) if needs[0] else None
    to_grid = np.zeros_like(positions) if needs[1] else None
    for start in range(0, positions.shape[1], _BLOCK):
        block = slice(start, start + _BLOCK)
        corners, part = _corners(np, positions[:, block], *how), np.ascontiguousarray(rows[:, block])
        if needs[0]:
            for k, total in enumerate(to_pixels):
                total += _corner_matrix([(at[k], None if w is None else w[k]) for at, w in corners], len(total), total.dtype).T @ part[k]
        if needs[1]:
            for (at, _), slopes in zip(corners, _weight_slopes(np, positions[:, block], *how)):
                for k, image in enumerate(pixels):
                    dots = np.einsum("oc,oc->o", part[k], image.take(at[k], 0))
                    for d, slope in enumerate(slopes):
                        to_grid[k, block, d] += dots * slope[k]
    return to_pixels, to_grid


_SAMPLE = {n: Op(f"grid_sampler_{n}d", _sample, shape=_sample_shape, vjp=_sample_vjp, torch_name=f"GridSampler{n}DBackward0") for n in (2, 3)}


def _sampled_on_cpu(x, grid, mode, padding, align):
    """Channel by channel, of places and weights that are arrays of their own: XLA would find them anew for each channel's element, and read pixels
    of all channels that lie apart in the result."""
    n, channels, outputs = *x.shape[:2], grid.shape[1:-1]
    if not n * channels * math.prod(outputs):
        return NotImplemented
    planes = wide(x).reshape(n, channels, -1)
    planes = jnp.concatenate([planes, jnp.zeros_like(planes[..., :1])], 2)

    def stacked(positions):
        places, weights = zip(*_corners(jnp, positions, x.shape[2:], mode, padding, align))
        return jnp.stack(places, 1), None if weights[0] is None else jnp.stack(weights, 1)

    def of_plane(plane, at, weights):
        total = None
        for k, places in enumerate(at):
            part = plane.at[places].get(mode="promise_in_bounds")
            part = part if weights is None else part * weights[k]
            total = part if total is None else total + part
        return total
    at, weights = once(stacked, wide(grid).reshape(n, -1, grid.shape[-1]))
    made = jax.vmap(jax.vmap(of_plane, (0, None, None)))(planes, at, weights)
    return made.reshape(n, channels, *outputs).astype(x.dtype)


for _op in _SAMPLE.values():
    _op.kernel_for("cpu")(_sampled_on_cpu)
_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Tensor:
    """input (N, C, H, W) at the positions grid (N, H', W', 2), coordinates (x, y) from -1 to 1: (N, C, H', W'); 5-D alike."""
    if mode not in _MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in _PADDINGS:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
                         f"'{padding_mode}'")
    if align_corners is None:
        warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True "
             "if the old behavior is desired. See the documentation of grid_sample for details.")
        align_corners = False
    return _grid_sampler(need(input, "grid_sampler"), need(grid, "grid_sampler", "grid", 2), mode, padding_mode, bool(align_corners))


def _grid_sampler(input: Tensor, grid: Tensor, mode: str, padding: str, align: bool, ndim: int | None = None) -> Tensor:
    if input.shape[0] == grid.shape[0] and grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes {list(grid.shape)}")
    if input.ndim not in (4, 5) or input.ndim != grid.ndim or ndim not in (None, input.ndim):
        raise RuntimeError(f"grid_sampler(): expected {'4D or 5D' if ndim is None else f'{ndim}D'} input and grid with same number of dimensions, but got input with sizes "
                           f"{list(input.shape)} and grid with sizes {list(grid.shape)}")
    if input.dtype is not grid.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.short} but found {grid.dtype.short}")
    if input.dtype.category != FLOAT:
        raise not_implemented(f"grid_sampler_{input.ndim - 2}d_cpu_kernel_impl", input.dtype)
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError("grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
                           f"{list(input.shape)} and grid with sizes {list(grid.shape)}")
    for i, n in enumerate(input.shape[2:], 2):
        if n <= 0:
            raise RuntimeError(f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(input.shape)} with "
                               f"dimension {i} being empty")
    if mode == "bicubic" and input.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return apply(_SAMPLE[input.ndim - 2], (input, grid), (mode, padding, align))


@public(method=False)
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """grid_sample with its modes as numbers: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection."""
    return _grid_sampler(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], bool(align_corners))


@public(method=False)
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """grid_sampler of images."""
    return _grid_sampler(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], bool(align_corners), 4)


@public(method=False)
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """grid_sampler of volumes."""
    return _grid_sampler(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], bool(align_corners), 5)
