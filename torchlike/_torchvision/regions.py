"""Pooling over regions of feature maps: each bin of a region is a weighted sum of pixels (roi_align, ps_roi_align,
ps_roi_pool) or the largest one (roi_pool).

A bin's weights are products of its rows' and its columns', so each axis is worked out alone: `index` and `weight` of shape
(regions, bins, taps). How many taps an axis needs depends on the largest region: NumPy takes some regions at a time with as
many as those need, a compiled program has a bound for all, from the regions' values.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jax import lax
from jax import numpy as jnp

from .._core import dtype as dt
from .._core.registry import Op
from .._custom_operator import kernel
from .._tensor import Tensor
from .boxes import floats_only
from .sampling import combined, computed, matrix, run, spread

_PART = 64  # regions that NumPy takes at a time


class Kind(NamedTuple):
    """One of the operations: the taps of an axis, where its regions begin and end, whether each bin has channels of its own."""

    axis: Callable
    ends: Callable
    sensitive: bool = False


def _rounded(xp, x):
    """x rounded as C does: halves away from zero."""
    return xp.trunc(x + xp.copysign(xp.asarray(0.5, x.dtype), x))


def _exact(xp, low, high, scale, aligned):
    shift = 0.5 if aligned else 0
    low, high = low * scale - shift, high * scale - shift
    return low, high - low if aligned else xp.maximum(high - low, 1)


def _shifted(xp, low, high, scale, aligned):
    low, high = low * scale - 0.5, high * scale - 0.5
    return low, high - low


def _whole(xp, low, high, scale, aligned):
    low = _rounded(xp, low * scale)
    return low, xp.maximum(_rounded(xp, high * scale) - low, 1)


def _samples(xp, start, size, bins: int, length: int, ratio: int, bound: int | None):
    """Bilinear samples of each bin: `ratio` of them, or one a pixel."""
    step = (size / bins)[:, None, None]
    count = xp.full_like(step, ratio) if ratio > 0 else xp.ceil(step)
    most = ratio if ratio > 0 else bound or int(max(count.max(initial=0), 1))
    i = xp.arange(most, dtype=start.dtype)
    count = xp.maximum(count, 1)
    at = start[:, None, None] + xp.arange(bins, dtype=start.dtype)[None, :, None] * step + (i + 0.5) * step / count
    inside = (at >= -1) & (at <= length) & (i < count) & (step > 0 if ratio <= 0 else True)
    at, share = xp.clip(at, 0, length - 1), inside / count
    if ratio > 0:  # the two pixels beside each sample
        low = xp.floor(at)
        index, weight = xp.concatenate([low, low + 1], -1), xp.concatenate([(1 - at + low) * share, (at - low) * share], -1)
    else:  # samples are at most a pixel apart: the pixels from the first one's on
        index = xp.floor(at[..., :1]) + xp.arange(most + 1, dtype=start.dtype)
        weight = (xp.maximum(1 - abs(at[..., None, :] - index[..., None]), 0) * share[..., None, :]).sum(-1)
    return xp.minimum(index, length - 1).astype(np.int32), weight.astype(start.dtype)


def _edges(xp, start, size, bins: int, end: int):
    """First pixel of each bin, and the one after its last: (regions, bins, 1)."""
    step, p = (size / (size * 0 + bins))[:, None], xp.arange(bins, dtype=start.dtype)  # XLA multiplies by a constant's inverse, which rounds otherwise
    low, high = xp.floor(p * step) + start[:, None], xp.ceil((p + 1) * step) + start[:, None]
    return [xp.clip(x, 0, end)[..., None] for x in (low, high)]


def _means(xp, start, size, bins: int, length: int, ratio: int, bound: int | None, end: int | None = None):
    """The pixels of each bin, all alike."""
    low, high = _edges(xp, start, size, bins, length if end is None else end)
    index = low + xp.arange(bound or int(max((high - low).max(initial=0), 1)), dtype=start.dtype)
    weight = (index < high) / xp.maximum(high - low, 1)
    return xp.minimum(index, length - 1).astype(np.int32), weight.astype(start.dtype)


def _inner_means(xp, start, size, bins: int, length: int, ratio: int, bound: int | None):
    """`_means` without the last row or column: torchvision reads neither, though its derivative divides as if it did."""
    return _means(xp, start, size, bins, length, ratio, bound, length - 1)


KINDS = {
    "roi_align": Kind(_samples, _exact),
    "ps_roi_align": Kind(_samples, _shifted, True),
    "ps_roi_pool": Kind(_inner_means, _whole, True),
    "_ps_roi_pool_backward": Kind(_means, _whole, True),
}


def _bound(rois: Tensor, low: int, kind: str, scale: float, bins: int, ratio: int, aligned: bool) -> int:
    """Taps of an axis that serve every region: a power of two, so that few programs differ in it."""
    if ratio > 0:
        return ratio
    r = rois._host_array()
    size = KINDS[kind].ends(np, r[:, low], r[:, low + 2], scale, aligned)[1] / bins
    return _power(np.abs(size).max(initial=1) + (KINDS[kind].axis is not _samples))


def _power(taps: float) -> int:
    return 1 << max(math.ceil(math.log2(np.nan_to_num(taps))), 0)


def _taps(xp, rois, shape, kind: str, scale, bins, ratio, aligned, bounds):
    """Which of the map's rows (images, for a sensitive kind also bins; then pixels) each bin sums, and their weights."""
    (_, _, height, width), (ph, pw), (axis, ends, sensitive) = shape, bins, KINDS[kind]
    image = rois[:, 0].astype(np.int32)[:, None, None]
    if sensitive:
        image = (image * ph + xp.arange(ph, dtype=np.int32)[:, None]) * pw + xp.arange(pw, dtype=np.int32)
    y, wy = axis(xp, *ends(xp, rois[:, 2], rois[:, 4], scale, aligned), ph, height, ratio, bounds[0])
    x, wx = axis(xp, *ends(xp, rois[:, 1], rois[:, 3], scale, aligned), pw, width, ratio, bounds[1])
    index = (image[..., None, None] * height + y[:, :, None, :, None]) * width + x[:, None, :, None, :]
    weight = wy[:, :, None, :, None] * wx[:, None, :, None, :]
    n = len(rois) * ph * pw
    return index.reshape(n, index.shape[-2] * index.shape[-1]), weight.reshape(n, weight.shape[-2] * weight.shape[-1])


def _matrix(rois, shape, kind: str, scale, bins, ratio, aligned, rows: int):
    """All bins' weights as one sparse matrix."""
    from scipy.sparse import vstack
    parts = [matrix(*_taps(np, rois[i:i + _PART], shape, kind, scale, bins, ratio, aligned, (None, None)), rows) for i in range(0, max(len(rois), 1), _PART)]
    return parts[0] if len(parts) == 1 else vstack(parts, "csr")


def _sizes(shape, kind: str, bins) -> tuple[int, int]:
    """(rows, columns) of the map as a matrix: see `_taps`."""
    batch, channels, height, width = shape
    cells = bins[0] * bins[1] if KINDS[kind].sensitive else 1
    return batch * cells * height * width, channels // cells


def _forward(xp, input, rois, kind, scale, bins, ratio, aligned, bounds):
    (ph, pw), (batch, _, height, width) = bins, input.shape
    rows, columns = _sizes(input.shape, kind, bins)
    cells = rows // (batch * height * width) if batch else 1
    x = input.reshape(batch, columns, cells, height, width).transpose(0, 2, 3, 4, 1).reshape(rows, columns)
    arguments = rois, input.shape, kind, scale, bins, ratio, aligned
    if xp is np:
        out = _matrix(*arguments, rows) @ computed(np, x)
    else:
        out = combined(xp, x, *_taps(xp, *arguments, bounds))
    out = out.reshape(len(rois), ph, pw, columns).transpose(0, 3, 1, 2).astype(input.dtype)
    if kind == "ps_roi_align" and ratio <= 0:  # torchvision divides by the number of samples also where that is 0
        none = [xp.ceil(_shifted(xp, rois[:, i], rois[:, i + 2], scale, aligned)[1] / n) == 0 for i, n in ((2, ph), (1, pw))]
        out = xp.where((none[0] | none[1])[:, None, None, None], xp.asarray(np.nan, out.dtype), out)
    return out


def _backward(xp, grad, rois, shape, kind, scale, bins, ratio, aligned, bounds):
    batch, channels, height, width = shape
    rows, columns = _sizes(shape, kind, bins)
    g = grad.transpose(0, 2, 3, 1).reshape(-1, columns)
    arguments = rois, shape, kind, scale, bins, ratio, aligned
    if xp is np:
        x = _matrix(*arguments, rows).T @ computed(np, g)
    else:
        x = spread(xp, g, *_taps(xp, *arguments, bounds), rows)
    x = x.reshape(batch, channels // columns, height, width, columns).transpose(0, 4, 1, 2, 3)
    return x.reshape(shape).astype(grad.dtype)


_FORWARD = Op("regions", _forward, vjp=False, shape=lambda a, r, kind, scale, bins, *rest: ((r.shape[0], _sizes(a.shape, kind, bins)[1], *bins), a.dtype))
_BACKWARD = Op("regions_spread", _backward, vjp=False, shape=lambda g, r, shape, *rest: (shape, g.dtype))


def _checked(name: str, first: Tensor, rois: Tensor, argument: str = "input", message: str | None = None) -> None:
    """torch's errors for what every one of these operations is given."""
    if message is not None and rois.size(1) != 5:
        raise RuntimeError(message)
    if first.dtype is not rois.dtype:
        raise RuntimeError(f"Expected tensor for argument #1 '{argument}' to have the same type as tensor for argument #2 'rois'; but type {first.type()} "
                           f"does not equal {rois.type()} (while checking arguments for {name})")
    if argument == "input":
        first.size(3)
    if first.numel() and rois.size(0):
        floats_only(first, name, dt.float16)


def _bounds(rois: Tensor, kind: str, scale: float, bins, ratio: int, aligned: bool) -> tuple[int, int]:
    return _bound(rois, 2, kind, scale, bins[0], ratio, aligned), _bound(rois, 1, kind, scale, bins[1], ratio, aligned)


def _pooled(kind, message, input, rois, scale, ph, pw, ratio=0, aligned=False):
    _checked(f"{kind}_forward_kernel", input, rois, message=message)
    if KINDS[kind].sensitive and input.size(1) % (ph * pw):
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    bins, columns = (ph, pw), input.size(1) // (ph * pw if KINDS[kind].sensitive else 1)
    if not (input.numel() and rois.size(0) and ph * pw):
        return input.new_zeros((rois.size(0), columns, ph, pw))
    return run(_FORWARD, (input, rois), (kind, scale, bins, ratio, aligned, _bounds(rois, kind, scale, bins, ratio, aligned)))


def _pooled_backward(kind, grad, rois, scale, ph, pw, shape, ratio=0, aligned=False):
    _checked(f"{kind.removeprefix('_').removesuffix('_backward')}_backward_kernel", grad, rois, "grad")
    if not grad.numel():
        return grad.new_zeros(shape)
    return run(_BACKWARD, (grad, rois), (shape, kind, scale, (ph, pw), ratio, aligned, _bounds(rois, kind, scale, (ph, pw), ratio, aligned)))


def _mapping(pooled: Tensor) -> Tensor:
    """Which of the map's channels each bin was made from."""
    n, columns, ph, pw = pooled.shape
    return pooled.new_zeros((), dtype=dt.int32).new_tensor(np.arange(columns * ph * pw, dtype=np.int32).reshape(columns, ph, pw)).repeat(n, 1, 1, 1)


@kernel("torchvision::roi_align", "default")
def roi_align(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int, aligned: bool) -> Tensor:
    """Means of bilinear samples."""
    return _pooled("roi_align", "rois must have shape as Tensor[K, 5]", input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)


@kernel("torchvision::_roi_align_backward", "default")
def _roi_align_backward(grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width, sampling_ratio, aligned) -> Tensor:
    shape = batch_size, channels, height, width
    return _pooled_backward("roi_align", grad, rois, spatial_scale, pooled_height, pooled_width, shape, sampling_ratio, aligned)


_SENSITIVE = "Tensor rois should have shape as Tensor[K, 5]"


@kernel("torchvision::ps_roi_align", "default")
def ps_roi_align(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int) -> tuple[Tensor, Tensor]:
    """Means of bilinear samples, of a channel for each bin."""
    out = _pooled("ps_roi_align", _SENSITIVE, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio)
    return out, _mapping(out)


@kernel("torchvision::_ps_roi_align_backward", "default")
def _ps_roi_align_backward(grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, sampling_ratio, batch_size, channels, height, width) -> Tensor:
    shape = batch_size, channels, height, width
    return _pooled_backward("ps_roi_align", grad, rois, spatial_scale, pooled_height, pooled_width, shape, sampling_ratio)


@kernel("torchvision::ps_roi_pool", "default")
def ps_roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int) -> tuple[Tensor, Tensor]:
    """Means of pixels, of a channel for each bin."""
    out = _pooled("ps_roi_pool", _SENSITIVE, input, rois, spatial_scale, pooled_height, pooled_width)
    return out, _mapping(out)


@kernel("torchvision::_ps_roi_pool_backward", "default")
def _ps_roi_pool_backward(grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width) -> Tensor:
    shape = batch_size, channels, height, width
    return _pooled_backward("_ps_roi_pool_backward", grad, rois, spatial_scale, pooled_height, pooled_width, shape)


# -- the largest pixel of each bin ---------------------------------------------------------------------------------------


def _bins(xp, rois, height, width, scale, bins, bounds):
    """The pixels (height x width numbers) of each bin, (regions * bins, taps), some of them several times; which bins have none."""
    axes = []
    for low, n, length, bound in ((2, bins[0], height, bounds[0]), (1, bins[1], width, bounds[1])):
        start = _rounded(xp, rois[:, low] * scale)
        first, end = _edges(xp, start, xp.maximum(_rounded(xp, rois[:, low + 2] * scale) - start + 1, 1), n, length)
        index = first + xp.arange(bound or int(max((end - first).max(initial=0), 1)), dtype=first.dtype)
        axes += [xp.minimum(xp.where(index < end, index, first), length - 1).astype(np.int32), (end > first)[..., 0]]
    y, some_y, x, some_x = axes
    index = y[:, :, None, :, None] * width + x[:, None, :, None, :]
    return index.reshape(math.prod(index.shape[:3]), -1), ~(some_y[:, :, None] & some_x[:, None, :]).reshape(-1, 1)


def _largest(xp, input, rois, scale, bins, bounds):
    batch, channels, height, width = input.shape
    x = input.transpose(0, 2, 3, 1).reshape(-1, channels)

    def part(rois):
        index, empty = _bins(xp, rois, height, width, scale, bins, bounds if xp is not np else (None, None))
        image = xp.repeat(rois[:, 0].astype(np.int32) * (height * width), bins[0] * bins[1])
        value, at = xp.full((len(index), channels), np.finfo(x.dtype).min, x.dtype), xp.full((len(index), channels), -1, np.int32)

        def step(t, best):
            value, at = best
            new = x[image + index[:, t]]
            better = new > value
            return xp.where(better, new, value), xp.where(better, index[:, t, None], at)
        if xp is np:
            new, taps = np.empty_like(value), [image + i for i in index.T]
            for tap in taps:
                np.fmax(value, np.take(x, tap, 0, out=new, mode="clip"), out=value)
            met, before = np.zeros(value.shape, bool), np.zeros(value.shape, np.int32)  # the largest one, and how many taps lie before it
            for tap in taps:
                met |= np.take(x, tap, 0, out=new, mode="clip") == value
                before += ~met
            at = np.take_along_axis(np.concatenate([index, at[:, :1]], 1), before, 1)
        else:
            value, at = lax.fori_loop(0, index.shape[1], step, (value, at))
        return xp.where(empty, xp.zeros((), x.dtype), value), xp.where(empty, -1, at)
    parts = [part(rois[i:i + 4]) for i in range(0, len(rois), 4)] if xp is np else [part(rois)]
    return [xp.concatenate(p).reshape(len(rois), *bins, channels).transpose(0, 3, 1, 2) for p in zip(*parts)]


def _largest_backward(xp, grad, rois, argmax, shape):
    batch, channels, height, width = shape
    image = rois[:, 0].astype(np.int64)[:, None, None, None]
    index = (image * channels + xp.arange(channels)[:, None, None]) * (height * width) + xp.maximum(argmax, 0)
    g = xp.where(argmax >= 0, grad, xp.zeros((), grad.dtype))
    if xp is np:
        return np.bincount(index.ravel(), g.ravel(), math.prod(shape)).reshape(shape)
    return jnp.zeros(math.prod(shape), grad.dtype).at[index.ravel()].add(g.ravel()).reshape(shape)


_LARGEST = Op("regions_largest", _largest, vjp=False, shape=lambda a, r, scale, bins, bounds: [((r.shape[0], a.shape[1], *bins), d) for d in (a.dtype, dt.int32)])
_LARGEST_BACKWARD = Op("regions_largest_spread", _largest_backward, vjp=False, shape=lambda g, r, at, shape: (shape, g.dtype))


def _most(rois: Tensor, low: int, scale: float, bins: int) -> int:
    r = rois._host_array() * scale
    return _power(max((r[:, low + 2] - r[:, low]).max(initial=0) + 2, 1) / bins + 2)


@kernel("torchvision::roi_pool", "default")
def roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int) -> tuple[Tensor, Tensor]:
    """The largest pixel of each bin, and which it was."""
    _checked("roi_pool_forward_kernel", input, rois)
    shape = rois.size(0), input.size(1), pooled_height, pooled_width
    if not (input.numel() and math.prod(shape)):
        return input.new_zeros(shape), input.new_zeros(shape, dtype=dt.int32)
    bins = pooled_height, pooled_width
    return run(_LARGEST, (input, rois), (spatial_scale, bins, (_most(rois, 2, spatial_scale, bins[0]), _most(rois, 1, spatial_scale, bins[1]))))


@kernel("torchvision::_roi_pool_backward", "default")
def _roi_pool_backward(grad, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width) -> Tensor:
    _checked("roi_pool_backward_kernel", grad, rois, "grad")
    shape = batch_size, channels, height, width
    return run(_LARGEST_BACKWARD, (grad, rois, argmax), (shape,)) if grad.numel() else grad.new_zeros(shape)
