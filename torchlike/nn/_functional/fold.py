"""Patches: unfold (im2col) and fold (col2im); pixel and channel shuffles."""
from __future__ import annotations

import math

from ..._arguments import as_int
from ..._core import dtype as dt
from ..._core.registry import Op
from ..._public import named, public
from ..._tensor import Tensor, apply
from .common import keep_format, need, not_implemented
from .pooling import _padded, _unpad
from .windows import spread, stacked


def _sizes(shape, kernel, dilation, padding, stride):
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(shape, kernel, dilation, padding, stride))


def _patches(xp, x, sizes, kernel, dilation, padding, stride):
    """(N, C, H, W) to (N, C * positions in the window, windows)."""
    x = _padded(xp, x, [(p, p) for p in padding], 0)
    return stacked(xp, x, kernel, stride, dilation, sizes, 2).reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(sizes))


def _overlay(xp, columns, shape, sizes, kernel, dilation, padding, stride):
    """The adjoint: windows added up in a plane of the given shape."""
    n, c = columns.shape[0], columns.shape[1] // math.prod(kernel)
    parts = columns.reshape(n, c, math.prod(kernel), *sizes)
    padded = (n, c, *(s + 2 * p for s, p in zip(shape, padding)))
    out = spread(xp, parts, padded, kernel, stride, dilation, sizes, 2)
    return _unpad(out, [(p, p) for p in padding], (n, c, *shape))


_UNFOLD = Op("im2col", _patches, shape=lambda x, sizes, kernel, *rest: ((x.shape[0], x.shape[1] * math.prod(kernel), math.prod(sizes)), x.dtype),
             vjp=lambda xp, g, plan: _overlay(xp, g, plan.avals[0].shape[2:], *plan.statics), torch_name="Im2ColBackward0")
_FOLD = Op("col2im", _overlay, shape=lambda x, shape, sizes, kernel, *rest: ((x.shape[0], x.shape[1] // math.prod(kernel), *shape), x.dtype),
           vjp=lambda xp, g, plan: _patches(xp, g, *plan.statics[1:]), torch_name="Col2ImBackward0")


def _pair(value, name: str) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    value = tuple(int(v) for v in value)
    if len(value) == 1:
        return value * 2
    if len(value) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return value


def _window(kernel_size, dilation, padding, stride) -> tuple:
    kernel, dilation = _pair(kernel_size, "kernel_size"), _pair(dilation, "dilation")
    padding, stride = _pair(padding, "padding"), _pair(stride, "stride")
    for value, name in ((kernel, "kernel size"), (dilation, "dilation"), (stride, "stride")):
        if min(value) <= 0:
            raise RuntimeError(f"{name} should be greater than zero, but got {name.replace(' ', '_')}_height: {value[0]} "
                               f"{name.replace(' ', '_')}_width: {value[1]}".replace("kernel_size_", "kernel_"))
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")
    return kernel, dilation, padding, stride


def unfold(input: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Sliding windows of (N, C, H, W) as columns: (N, C * kh * kw, windows)."""
    need(input, "im2col")
    kernel, dilation, padding, stride = _window(kernel_size, dilation, padding, stride)
    batched = input.ndim == 4
    if input.ndim < 3:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got 2)")
    if input.ndim not in (3, 4) or not all(input.shape[-3:]):
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    sizes = _sizes(input.shape[-2:], kernel, dilation, padding, stride)
    if min(sizes) < 1:
        pair = lambda v: f"({v[0]}, {v[1]})"  # noqa: E731
        raise RuntimeError(f"Given input with spatial size {pair(input.shape[-2:])}, kernel_size={pair(kernel)}, dilation={pair(dilation)}, "
                           f"padding={pair(padding)}, calculated shape of the array of sliding blocks as {pair(sizes)}, but its "
                           "components must be at least one.")
    if input.dtype.category == dt.INT:
        raise not_implemented("im2col_out_cpu", input.dtype)
    out = apply(_UNFOLD, (input if batched else input.unsqueeze(0),), (sizes, kernel, dilation, padding, stride))
    return out if batched else out.squeeze(0)


def fold(input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Columns of windows added up in an image: (N, C * kh * kw, windows) to (N, C, *output_size)."""
    need(input, "col2im")
    shape = _pair(output_size, "output_size")
    kernel, dilation, padding, stride = _window(kernel_size, dilation, padding, stride)
    if input.ndim not in (2, 3) or not all(input.shape[-2:]):
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    rows = math.prod(kernel)
    if input.shape[-2] % rows:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
                           f"{input.shape[-2]} and kernel_size=({kernel[0]}, {kernel[1]}).")
    sizes = _sizes(shape, kernel, dilation, padding, stride)
    if math.prod(sizes) != input.shape[-1] or min(sizes) < 1:
        pair = lambda v: f"({v[0]}, {v[1]})"  # noqa: E731
        given = (f"Given output_size={pair(shape)}, kernel_size={pair(kernel)}, dilation={pair(dilation)}, padding={pair(padding)}, "
                 f"stride={pair(stride)}, ")
        if math.prod(sizes) != input.shape[-1]:
            raise RuntimeError(f"{given}expected size of input's dimension 2 to match the calculated number of sliding blocks "
                               f"{sizes[0]} * {sizes[1]} = {math.prod(sizes)}, but got input.size(2)={input.shape[-1]}.")
        raise RuntimeError(f"{given}calculated shape of the array of sliding blocks as {pair(sizes)}, which is too small (non-positive)")
    batched = input.ndim == 3
    out = apply(_FOLD, (input if batched else input.unsqueeze(0),), (shape, sizes, kernel, dilation, padding, stride))
    return out if batched else out.squeeze(0)


# -- shuffles ----------------------------------------------------------------------------------------------------------------


def _need_3d(name: str, input: Tensor) -> None:
    if input.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)")


@public(method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C r^2, H, W) to (*, C, H r, W r) (Shi et al. 2016)."""
    _need_3d("pixel_shuffle", need(input, "pixel_shuffle"))
    r = as_int(upscale_factor, "upscale_factor", "pixel_shuffle(): ", " (position 2)")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if r * r > 2 ** 63 - 1:
        raise ValueError(f"upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor={r}")
    *lead, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                           f"input.size(-3)={c} is not divisible by {r * r}")
    k = len(lead)
    x = input.reshape(*lead, c // (r * r), r, r, h, w).permute(*range(k + 1), k + 3, k + 1, k + 4, k + 2)
    return named(keep_format(x.reshape(*lead, c // (r * r), h * r, w * r), input, ranks=(4,)), "PixelShuffleBackward0", input)


@public(method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H r, W r) to (*, C r^2, H, W): the inverse of pixel_shuffle."""
    _need_3d("pixel_unshuffle", need(input, "pixel_unshuffle"))
    r = as_int(downscale_factor, "downscale_factor", "pixel_unshuffle(): ", " (position 2)")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = input.shape
    for size, name, dim in ((h, "height", -2), (w, "width", -1)):
        if size % r:
            raise RuntimeError(f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} is not divisible by {r}")
    k = len(lead)
    x = input.reshape(*lead, c, h // r, r, w // r, r).permute(*range(k + 1), k + 2, k + 4, k + 1, k + 3)
    return named(keep_format(x.reshape(*lead, c * r * r, h // r, w // r), input, ranks=(4,)), "PixelUnshuffleBackward0", input)


@public(method=False, names=("native_channel_shuffle",))
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels (dimension 1) of `groups` groups interleaved (Zhang et al. 2018)."""
    if need(input, "channel_shuffle").ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    groups = as_int(groups, "groups", "channel_shuffle(): ", " (position 2)")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    n, c, *rest = input.shape
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return keep_format(input.reshape(n, groups, c // groups, *rest).transpose(1, 2).reshape(n, c, *rest), input)
