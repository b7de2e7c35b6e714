"""Pooling over windows: maximum, average, power average, adaptive and fractional, and un-pooling."""
from __future__ import annotations

from typing import Any

from torchlike._tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn.common_types import (
    _ratio_2_t,
    _ratio_3_t,
    _ratio_any_t,
    _size_1_t,
    _size_2_t,
    _size_3_t,
    _size_any_opt_t,
    _size_any_t,
)
from torchlike.nn.modules._forward import own_forward
from torchlike.nn.modules.module import Module
from torchlike.nn.modules.utils import Named, _pair, _single, _triple

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
           "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
           "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
           "MaxUnpool3d"]


class _MaxPoolNd(Module):
    """The maximum of each window; with `return_indices` also where it was. `stride` defaults to the window."""

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    _function = Named("max_pool1d")

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None, padding: _size_any_t = 0,
                 dilation: _size_any_t = 1, return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return self._function(input, self.kernel_size, self.stride, self.padding, self.dilation,
                              ceil_mode=self.ceil_mode, return_indices=self.return_indices)

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}, ceil_mode={self.ceil_mode}")


class MaxPool1d(_MaxPoolNd):
    """(N, C, L) -> (N, C, L_out), L_out = (L + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1."""

    _function = Named("max_pool1d")


class MaxPool2d(_MaxPoolNd):
    """(N, C, H, W) -> (N, C, H_out, W_out), each size as in MaxPool1d."""

    _function = Named("max_pool2d")


class MaxPool3d(_MaxPoolNd):
    """(N, C, D, H, W) -> (N, C, D_out, H_out, W_out), each size as in MaxPool1d."""

    _function = Named("max_pool3d")


class _MaxUnpoolNd(Module):
    """Puts each value back where a MaxPool layer's index says, zeros elsewhere."""

    _function = Named("max_unpool1d")
    _tuple = staticmethod(_single)

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None, padding: _size_any_t = 0) -> None:
        super().__init__()
        self.kernel_size = self._tuple(kernel_size)
        self.stride = self._tuple(stride if stride is not None else kernel_size)
        self.padding = self._tuple(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor:
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """The inverse of MaxPool1d but for the values that were not maxima."""

    _function, _tuple = staticmethod(F.max_unpool1d), staticmethod(_single)


class MaxUnpool2d(_MaxUnpoolNd):
    """The inverse of MaxPool2d but for the values that were not maxima."""

    _function, _tuple = staticmethod(F.max_unpool2d), staticmethod(_pair)


class MaxUnpool3d(_MaxUnpoolNd):
    """The inverse of MaxPool3d but for the values that were not maxima."""

    _function, _tuple = staticmethod(F.max_unpool3d), staticmethod(_triple)


class _AvgPoolNd(Module):
    """The mean of each window."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """(N, C, L) -> (N, C, L_out)."""

    def __init__(self, kernel_size: _size_1_t, stride: _size_1_t = None, padding: _size_1_t = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """(N, C, H, W) -> (N, C, H_out, W_out); `divisor_override` replaces the window's size."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]
    _function = Named("avg_pool2d")

    def __init__(self, kernel_size: _size_2_t, stride: _size_2_t | None = None, padding: _size_2_t = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                              self.count_include_pad, self.divisor_override)


class AvgPool3d(AvgPool2d):
    """(N, C, D, H, W) -> (N, C, D_out, H_out, W_out); `divisor_override` replaces the window's size."""

    _function = Named("avg_pool3d")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"padding": 0, "ceil_mode": False, "count_include_pad": True, **state})


class _FractionalMaxPoolNd(Module):
    """Maxima of windows at random places, for any output size or ratio in (0, 1). Graham, 2014."""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _function = Named("fractional_max_pool2d")
    _tuple = staticmethod(_pair)

    def __init__(self, kernel_size: _size_any_t, output_size: _size_any_t | None = None, output_ratio: _ratio_any_t | None = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> None:
        super().__init__()
        self.kernel_size = self._tuple(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = self._tuple(output_size) if output_size is not None else None
        self.output_ratio = self._tuple(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return self._function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
                              _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """(N, C, H, W) -> (N, C, *output_size)."""

    def __init__(self, kernel_size: _size_2_t, output_size: _size_2_t | None = None,
                 output_ratio: _ratio_2_t | None = None, return_indices: bool = False,
                 _random_samples: Tensor | None = None) -> None:
        super().__init__(kernel_size, output_size, output_ratio, return_indices, _random_samples)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """(N, C, D, H, W) -> (N, C, *output_size)."""

    _function, _tuple = staticmethod(F.fractional_max_pool3d), staticmethod(_triple)

    def __init__(self, kernel_size: _size_3_t, output_size: _size_3_t | None = None,
                 output_ratio: _ratio_3_t | None = None, return_indices: bool = False,
                 _random_samples: Tensor | None = None) -> None:
        if any(k <= 0 for k in _triple(kernel_size)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        super().__init__(kernel_size, output_size, output_ratio, return_indices, _random_samples)


class _LPPoolNd(Module):
    """(sum of x^p)^(1/p) of each window."""

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _function = Named("lp_pool1d")

    def __init__(self, norm_type: float, kernel_size: _size_any_t, stride: _size_any_t | None = None,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"ceil_mode={self.ceil_mode}")


class LPPool1d(_LPPoolNd):
    """(N, C, L) -> (N, C, L_out)."""

    _function = Named("lp_pool1d")


class LPPool2d(_LPPoolNd):
    """(N, C, H, W) -> (N, C, H_out, W_out)."""

    _function = Named("lp_pool2d")


class LPPool3d(_LPPoolNd):
    """(N, C, D, H, W) -> (N, C, D_out, H_out, W_out)."""

    _function = Named("lp_pool3d")


class _AdaptiveMaxPoolNd(Module):
    """The maximum of each window, the windows chosen so that the output has `output_size` (None: the input's)."""

    __constants__ = ["output_size", "return_indices"]
    _function = Named("adaptive_max_pool1d")

    def __init__(self, output_size: _size_any_opt_t, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return self._function(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """(N, C, L) -> (N, C, output_size)."""

    _function = Named("adaptive_max_pool1d")


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """(N, C, H, W) -> (N, C, *output_size)."""

    _function = Named("adaptive_max_pool2d")


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """(N, C, D, H, W) -> (N, C, *output_size)."""

    _function = Named("adaptive_max_pool3d")


class _AdaptiveAvgPoolNd(Module):
    """The mean of each window, the windows chosen so that the output has `output_size` (None: the input's)."""

    __constants__ = ["output_size"]
    _function = Named("adaptive_avg_pool1d")

    def __init__(self, output_size: _size_any_opt_t) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """(N, C, L) -> (N, C, output_size)."""

    _function = Named("adaptive_avg_pool1d")


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """(N, C, H, W) -> (N, C, *output_size)."""

    _function = Named("adaptive_avg_pool2d")


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """(N, C, D, H, W) -> (N, C, *output_size)."""

    _function = Named("adaptive_avg_pool3d")


own_forward(MaxPool1d, MaxPool2d, MaxPool3d, AvgPool3d, FractionalMaxPool2d, FractionalMaxPool3d, LPPool1d, LPPool2d, LPPool3d,
            AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d)
