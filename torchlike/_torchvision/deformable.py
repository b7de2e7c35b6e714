"""Deformable convolution: every tap of the kernel reads the map where its offset says, between pixels.

All taps' samples are one matrix (see sampling.py), (images · places, groups of offsets · taps · channels), so the convolution
is its product with the weights. The derivative makes the samples again: they are as large as for a convolution by patches.
"""
from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np

from .._core import dtype as dt
from .._core.registry import Op
from .._custom_operator import kernel
from .._tensor import Tensor
from .boxes import floats_only
from .sampling import combined, computed, products, run, spread


class Window(NamedTuple):
    """How the kernel lies on the map."""

    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    offset_groups: int

    def size(self, shape, weight) -> tuple[int, ...]:
        """Height and width of the result."""
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1
                     for n, k, s, p, d in zip(shape[2:], weight[2:], self.stride, self.padding, self.dilation))


def _axis(xp, at, length: int):
    """The pixels beside each position, the position's share of either, and its derivative."""
    low = xp.floor(at)
    beside = xp.stack([low, low + 1])
    inside = (beside >= 0) & (beside < length)
    one = xp.ones((), at.dtype)
    share = xp.stack([1 - (at - low), at - low]) * inside
    return xp.clip(beside, 0, length - 1).astype(np.int32), share, xp.stack([-one, one]).reshape(2, *[1] * at.ndim) * inside


def _places(xp, offset, mask, shape, weight, w: Window):
    """For each sample, in the order (image, row, column, group, tap): which of the map's rows its corners are, (samples, 4); each
    corner's share, and that share's derivatives by y and x, all without the mask; and the mask."""
    n, (height, width), (kh, kw), (oh, ow), g = shape[0], shape[2:], weight[2:], offset.shape[2:], w.offset_groups
    at = offset.reshape(n, g, kh * kw, 2, oh, ow).transpose(3, 0, 4, 5, 1, 2)
    corner = [xp.arange(o, dtype=at.dtype) * s - p for o, s, p in zip((oh, ow), w.stride, w.padding)]
    tap = [xp.arange(k, dtype=at.dtype) * d for k, d in zip((kh, kw), w.dilation)]
    y, in_y, dy = _axis(xp, at[0] + corner[0][:, None, None, None] + xp.repeat(tap[0], kw), height)
    x, in_x, dx = _axis(xp, at[1] + corner[1][:, None, None] + xp.tile(tap[1], kh), width)
    image = (xp.arange(n, dtype=np.int32)[:, None, None, None] * g + xp.arange(g, dtype=np.int32))[..., None]

    def corners(of_y, of_x, joined=operator.mul):
        return xp.stack([joined(of_y[i], of_x[j]) for i in (0, 1) for j in (0, 1)], -1).reshape(-1, 4)
    four = corners(y, x, lambda y, x: (image * height + y) * width + x), corners(in_y, in_x), corners(dy, in_x), corners(in_y, dx)
    kept = None if mask is None else mask.reshape(n, g, kh * kw, oh, ow).transpose(0, 3, 4, 1, 2).reshape(-1, 1)
    return *four, kept


def _rows(input, g: int):
    """The map as a matrix: (images, groups, pixels) by a group's channels."""
    n, c, height, width = input.shape
    return input.reshape(n, g, c // g, height, width).transpose(0, 1, 3, 4, 2).reshape(n * g * height * width, c // g)


def _by_group(samples, places: int, w: Window, taps: int):
    """(samples, channels of an offset group) as (groups, places, taps · channels of a group)."""
    if w.offset_groups == 1 == w.groups:
        return samples.reshape(1, places, -1)
    s = samples.reshape(places, w.offset_groups, taps, -1).transpose(0, 2, 1, 3)
    return s.reshape(places, taps, w.groups, -1).transpose(2, 0, 1, 3).reshape(w.groups, places, -1)


def _by_sample(columns, w: Window, taps: int):
    """`_by_group` undone."""
    groups, places, n = columns.shape
    if w.offset_groups == 1 == w.groups:
        return columns.reshape(places * taps, -1)
    s = columns.reshape(groups, places, taps, n // taps).transpose(1, 2, 0, 3).reshape(places, taps, w.offset_groups, -1)
    return s.transpose(0, 2, 1, 3).reshape(places * w.offset_groups * taps, -1)


def _weights(weight, groups: int):
    """(groups, taps · channels, results of a group)."""
    o, c, kh, kw = weight.shape
    return weight.reshape(groups, o // groups, c, kh * kw).transpose(0, 3, 2, 1).reshape(groups, kh * kw * c, o // groups)


def _forward(xp, input, weight, offset, mask, bias, w: Window):
    n, (o, _, kh, kw), (oh, ow) = input.shape[0], weight.shape, offset.shape[2:]
    index, share, _, _, kept = _places(xp, offset, mask, input.shape, weight.shape, w)
    samples = combined(xp, _rows(input, w.offset_groups), index, share if kept is None else share * kept)
    out = _by_group(samples, n * oh * ow, w, kh * kw) @ computed(xp, _weights(weight, w.groups))
    out = out.reshape(w.groups, n, oh, ow, o // w.groups).transpose(1, 0, 4, 2, 3).reshape(n, o, oh, ow)
    return (out + bias[:, None, None]).astype(input.dtype)


def _backward(xp, grad, input, weight, offset, mask, w: Window):
    (n, _, height, width), (o, cw, kh, kw), (oh, ow) = input.shape, weight.shape, offset.shape[2:]
    index, share, dy, dx, kept = _places(xp, offset, mask, input.shape, weight.shape, w)
    weighed, x = share if kept is None else share * kept, _rows(input, w.offset_groups)
    g = computed(xp, grad).reshape(n, w.groups, o // w.groups, oh * ow).transpose(1, 0, 3, 2).reshape(w.groups, n * oh * ow, o // w.groups)
    samples = _by_group(combined(xp, x, index, weighed), n * oh * ow, w, kh * kw)
    g_weight = (samples.transpose(0, 2, 1) @ g).reshape(w.groups, kh * kw, cw, -1).transpose(0, 3, 2, 1).reshape(weight.shape)
    g_samples = _by_sample(g @ computed(xp, _weights(weight, w.groups)).transpose(0, 2, 1), w, kh * kw)
    g_input = spread(xp, g_samples, index, weighed, len(x)).reshape(n, w.offset_groups, height, width, -1).transpose(0, 1, 4, 2, 3).reshape(input.shape)
    corners = products(xp, x, g_samples, index)
    places = n, oh, ow, w.offset_groups, kh * kw
    moved = [(corners * d).sum(1) * (1 if kept is None else kept[:, 0]) for d in (dy, dx)]
    g_offset = xp.stack(moved).reshape(2, *places).transpose(1, 4, 5, 0, 2, 3).reshape(offset.shape)
    grads = [g_input, g_weight, g_offset, grad.sum((0, 2, 3))]
    if mask is not None:
        grads.append((corners * share).sum(1).reshape(places).transpose(0, 3, 4, 1, 2).reshape(mask.shape))
    return [x.astype(grad.dtype) for x in grads]


_FORWARD = Op("deform_conv2d", _forward, vjp=False, shape=lambda a, weight, offset, mask, bias, w: ((a.shape[0], weight.shape[0], *offset.shape[2:]), a.dtype))
_BACKWARD = Op("deform_conv2d_grads", _backward, vjp=False, shape=lambda g, a, weight, offset, mask, w: [
    (s, g.dtype) for s in (a.shape, weight.shape, offset.shape, weight.shape[:1], *([] if mask is None else [mask.shape]))])


def _expect(true: bool, condition: str) -> None:
    if not true:
        raise RuntimeError(f"Expected {condition} to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement "
                           "request to PyTorch.)")


def _valid(true: bool, message: str) -> None:
    if not true:
        raise RuntimeError(message)


def _check(input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor | None, w: Window) -> None:
    _expect(input.dim() == 4, "input_c.ndimension() == 4")
    _expect(offset.dim() == 4, "offset_c.ndimension() == 4")
    _expect(mask is None or mask.dim() == 4, "!use_mask || mask_c.ndimension() == 4")
    _expect(weight.dim() == 4, "weight_c.ndimension() == 4")
    (kh, kw), g = weight.shape[2:], w.offset_groups
    for name, (a, b), low in ("weight", (kh, kw), 1), ("stride", w.stride, 1), ("pad", w.padding, 0), ("dil", w.dilation, 1):
        _valid(a >= low and b >= low, f"{name}_h: {a} {name}_w: {b}")
    _expect(weight.size(1) * w.groups == input.size(1), "weight_c.size(1) * n_weight_grps == input_c.size(1)")
    _expect(weight.size(0) % w.groups == 0, "weight_c.size(0) % n_weight_grps == 0")
    size = w.size(input.shape, weight.shape)
    given = [("offset", offset, 2 * g * kh * kw), *([] if mask is None else [("mask", mask, g * kh * kw)])]
    for name, x, channels in given:
        _valid(x.size(1) == channels, f"{name}.shape[1] is not valid: got: {x.size(1)} expected: {channels}")
    _expect(input.size(1) % g == 0, "input_c.size(1) % n_offset_grps == 0")
    for name, x, _ in given:
        _valid(x.size(0) == input.size(0), f"invalid batch size of {name}")
        _valid(x.shape[2:] == size, f"{name} output dims: ({x.size(2)}, {x.size(3)}) - computed output dims: ({size[0]}, {size[1]})")
    _valid(min(size) > 0, f"Calculated output size too small - out_h: {size[0]} out_w: {size[1]}")
    if input.size(0):
        floats_only(input, "deformable_im2col", dt.float16)
        for _, x, _ in given:
            _valid(x.dtype is input.dtype, f"expected scalar type {input.dtype.short} but found {x.dtype.short}")


@kernel("torchvision::deform_conv2d", "default")
def deform_conv2d(input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int, pad_h: int, pad_w: int,
                  dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool) -> Tensor:
    """Convolution with an offset, and a factor, for every tap at every place."""
    w, mask = Window((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), groups, offset_groups), mask if use_mask else None
    _check(input, weight, offset, mask, w)
    if not input.size(0):
        return input.new_zeros((0, weight.size(0), *w.size(input.shape, weight.shape)))
    bias.view(1, weight.size(0), 1, 1)
    return run(_FORWARD, (input, weight, offset, mask, bias), (w,))


@kernel("torchvision::_deform_conv2d_backward", "default")
def _deform_conv2d_backward(grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int, pad_h: int,
                            pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool) -> tuple[Tensor, ...]:
    w = Window((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w), groups, offset_groups)
    if not input.size(0):
        return tuple(map(Tensor.new_zeros, (input, weight, offset, mask, bias), (x.shape for x in (input, weight, offset, mask, bias))))
    x, kernel, moved, shift, *factor = run(_BACKWARD, (grad, input, weight, offset, mask if use_mask else None), (w,))
    return x, kernel, moved, factor[0] if use_mask else mask.new_zeros(mask.shape), shift
