"""torch.ao.nn.quantized.functional: functions of quantized tensors, whose results are quantized as the input is unless a scale is given."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...._core import dtype as dt
from ...._tensor import Tensor
from ....nn import functional
from ....nn.modules.utils import _pair, _single, _triple
from ....ops import quantized as operators

__all__ = ["adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu", "clamp", "conv1d", "conv2d", "conv3d", "elu", "hardsigmoid",
           "hardswish", "hardtanh", "interpolate", "leaky_relu", "linear", "max_pool1d", "max_pool2d", "threshold", "upsample", "upsample_bilinear",
           "upsample_nearest"]


def _need(input: Tensor, name: str) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def avg_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Tensor:
    """Means of windows, `torch.nn.functional.avg_pool2d`: (N, C, H, W) to (N, C, oH, oW)."""
    _need(input, "avg_pool2d")
    return functional.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Tensor:
    """Means of windows, `torch.nn.functional.avg_pool3d`."""
    _need(input, "avg_pool3d")
    return functional.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows as `output_size` says."""
    _need(input, "functional.adaptive_avg_pool2d")
    return functional.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows as `output_size` says."""
    _need(input, "functional.adaptive_avg_pool3d")
    return functional.adaptive_avg_pool3d(input, output_size)


def _convolution(n: int, sizes: Callable, letters: str) -> Callable:
    def conv(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, padding_mode: str = "zeros",
             scale: float = 1.0, zero_point: int = 0, dtype: Any = dt.quint8) -> Tensor:
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        if input.dtype is not dt.quint8:
            raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
        if weight.dtype is not dt.qint8:
            raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
        if input.ndim != n + 2:
            raise ValueError(f"Input shape must be `(N, C, {letters})`!")
        packed = getattr(operators, f"conv{n}d_prepack")(weight, bias, sizes(stride), sizes(padding), sizes(dilation), groups)
        return getattr(operators, f"conv{n}d")(input, packed, scale, zero_point)
    conv.__name__ = conv.__qualname__ = f"conv{n}d"
    conv.__doc__ = (f"The convolution of a quint8 input (N, C, {letters}) with a qint8 weight and a float bias; the result has `scale` and `zero_point`. "
                    "NotImplementedError for other dtypes, and for padding that is not of zeros.")
    return conv


conv1d, conv2d, conv3d = _convolution(1, _single, "L"), _convolution(2, _pair, "H, W"), _convolution(3, _triple, "D, H, W")


def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """Images of another size, by the nearest elements or bilinear."""
    _need(input, "interpolate")
    return functional.interpolate(input, size, scale_factor, mode, align_corners)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, scale: float | None = None, zero_point: int | None = None) -> Tensor:
    """input (..., in) @ weight.T + bias, with a qint8 weight (out, in); the scale and zero point are the input's unless they are given."""
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return operators.linear(input, operators.linear_prepack(weight, bias), scale, zero_point)


def _pooled(pool: Callable, input: Tensor, settings: tuple, return_indices: bool) -> Tensor:
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return pool(input, *settings)


def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Tensor:
    """The largest elements of windows. NotImplementedError for `return_indices`."""
    return _pooled(functional.max_pool1d, input, (kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Tensor:
    """The largest elements of windows. NotImplementedError for `return_indices`."""
    return _pooled(functional.max_pool2d, input, (kernel_size, stride, padding, dilation, ceil_mode), return_indices)


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """`torch.nn.functional.celu`, with results of this scale."""
    _need(input, "celu")
    return operators.celu(input, scale, zero_point, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False, scale: float | None = None, zero_point: int | None = None) -> Tensor:
    """`torch.nn.functional.leaky_relu`, with results of this scale where both numbers of it are given."""
    if scale is not None and zero_point is not None:
        return operators.leaky_relu(input, negative_slope, False, scale, zero_point)
    return functional.leaky_relu(input, negative_slope, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """The elements, none below `min_val` and none above `max_val`."""
    _need(input, "hardtanh")
    return functional.hardtanh(input, min_val, max_val, inplace)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """`torch.nn.functional.hardswish`, with results of this scale."""
    _need(input, "hardswish")
    return operators.hardswish(input, scale, zero_point)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """The elements above `threshold`, and `value` for the others."""
    _need(input, "threshold")
    for name, given in (("threshold", threshold), ("value", value)):
        if given is None:
            raise ValueError(f"Input to '{name}' must be specified!")
    return functional.threshold(input, threshold, value)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """`torch.nn.functional.elu`, with results of this scale."""
    _need(input, "elu")
    return operators.elu(input, scale, zero_point, alpha)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`torch.nn.functional.hardsigmoid`, with steps of 1/256."""
    _need(input, "hardsigmoid")
    return functional.hardsigmoid(input, inplace)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """The elements, none below `min_` and none above `max_`."""
    _need(input, "clamp")
    return input.clamp(min_, max_)


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """The older name of interpolate."""
    _warn("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate(mode="bilinear", align_corners=True)`."""
    _warn("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate(mode="nearest")`."""
    _warn("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


def _warn(name: str) -> None:
    warnings.warn(f"nn.quantized.functional.{name} is deprecated. Use nn.quantized.functional.interpolate instead.", stacklevel=3)
