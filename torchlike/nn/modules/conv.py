"""Convolutions and transposed convolutions in 1, 2 and 3 dimensions, and their lazy forms."""
from __future__ import annotations

import math
import warnings
from typing import Any

from torchlike._tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn import init
from torchlike.nn.common_types import _size_any_t
from torchlike.nn.modules._forward import own_forward
from torchlike.nn.modules.lazy import LazyModuleMixin
from torchlike.nn.modules.module import Module
from torchlike.nn.modules.utils import Named, _pair, _reverse_repeat_tuple, _single, _triple
from torchlike.nn.parameter import UninitializedParameter, empty_parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d",
           "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d"]

_PADDING_STRINGS = {"same", "valid"}
_PADDING_MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """What all convolutions share: checks, parameters, initialization and printing."""

    __constants__ = ["stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
                     "out_channels", "kernel_size"]

    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple, stride: tuple, padding: str | tuple,
                 dilation: tuple, transposed: bool, output_padding: tuple, groups: int, bias: bool, padding_mode: str,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in _PADDING_STRINGS:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {_PADDING_STRINGS}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_for_pad()
        shape = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = empty_parameter(*shape, *kernel_size, device=device, dtype=dtype)
        if bias:
            self.bias = empty_parameter(out_channels, device=device, dtype=dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _padding_for_pad(self) -> Any:
        """The padding on each side, last dimension first, as `F.pad` takes it."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        sides = [0, 0] * len(self.kernel_size)
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            sides = [side for total in reversed(totals) for side in (total // 2, total - total // 2)]
        return sides

    def reset_parameters(self) -> None:
        """Uniform in +-1/sqrt(fan_in), weight first."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """A convolution; subclasses say how sizes become tuples and which function computes."""

    _tuple = staticmethod(_single)
    _function = Named("conv1d")

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _size_any_t, stride: _size_any_t = 1, padding: str | _size_any_t = 0,
                 dilation: _size_any_t = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        as_tuple = self._tuple
        super().__init__(in_channels, out_channels, as_tuple(kernel_size), as_tuple(stride),
                         padding if isinstance(padding, str) else as_tuple(padding), as_tuple(dilation), False,
                         as_tuple(0), groups, bias, padding_mode, device, dtype)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode == "zeros":
            return self._function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return self._function(padded, weight, bias, self.stride, self._tuple(0), self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """(N, C_in, L) -> (N, C_out, L_out), L_out = (L + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1."""

    _tuple, _function = staticmethod(_single), Named("conv1d")


class Conv2d(_Conv):
    """(N, C_in, H, W) -> (N, C_out, H_out, W_out), each size as in Conv1d."""

    _tuple, _function = staticmethod(_pair), Named("conv2d")


class Conv3d(_Conv):
    """(N, C_in, D, H, W) -> (N, C_out, D_out, H_out, W_out), each size as in Conv1d."""

    _tuple, _function = staticmethod(_triple), Named("conv3d")


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution with respect to its input, as a layer."""

    _tuple = staticmethod(_single)
    _function = Named("conv_transpose1d")

    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple, stride: tuple, padding: tuple,
                 dilation: tuple, transposed: bool, output_padding: tuple, groups: int, bias: bool, padding_mode: str,
                 device: Any = None, dtype: Any = None) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, transposed, output_padding,
                         groups, bias, padding_mode, device, dtype)

    def _output_padding(self, input: Tensor, output_size: list[int] | None, stride: _size_any_t, padding: _size_any_t, kernel_size: _size_any_t,
                        num_spatial_dims: int, dilation: _size_any_t | None = None) -> Any:
        """What to add on one side so that the output has `output_size` (spatial sizes, or the whole shape)."""
        if output_size is None:
            return self._tuple(self.output_padding)
        outer = 2 if input.dim() == num_spatial_dims + 2 else 1
        if len(output_size) == outer + num_spatial_dims:
            output_size = output_size[outer:]
        if len(output_size) != num_spatial_dims:
            raise ValueError(f"ConvTranspose{num_spatial_dims}D: for {input.dim()}D input, output_size must have "
                             f"{num_spatial_dims} or {outer + num_spatial_dims} elements (got {len(output_size)})")
        dilation = dilation or (1,) * num_spatial_dims
        low = [(input.size(d + outer) - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel_size[d] - 1) + 1
               for d in range(num_spatial_dims)]
        high = [size + s - 1 for size, s in zip(low, stride)]
        if any(not lo <= size <= hi for size, lo, hi in zip(output_size, low, high)):
            raise ValueError(f"requested an output size of {output_size}, but valid sizes range from {low} to {high} "
                             f"(for an input of {input.size()[2:]})")
        return [size - lo for size, lo in zip(output_size, low)]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        output_padding = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size,
                                              len(self.kernel_size), self.dilation)
        return self._function(input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups,
                              self.dilation)


class _ConvTransposeMixin(_ConvTransposeNd):
    """The same under an older name (mmengine asks whether a layer is one)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn("`_ConvTransposeMixin` is a deprecated internal class. Please consider using public APIs.", FutureWarning, stacklevel=2)
        super().__init__(*args, **kwargs)


class _ConvTranspose(_ConvTransposeNd):
    """A transposed convolution; subclasses say how sizes become tuples and which function computes."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _size_any_t, stride: _size_any_t = 1, padding: _size_any_t = 0,
                 output_padding: _size_any_t = 0, groups: int = 1, bias: bool = True, dilation: _size_any_t = 1,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        as_tuple = self._tuple
        super().__init__(in_channels, out_channels, as_tuple(kernel_size), as_tuple(stride), as_tuple(padding),
                         as_tuple(dilation), True, as_tuple(output_padding), groups, bias, padding_mode, device, dtype)


class ConvTranspose1d(_ConvTranspose):
    """(N, C_in, L) -> (N, C_out, L_out), L_out = (L - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1."""

    _tuple, _function = staticmethod(_single), Named("conv_transpose1d")


class ConvTranspose2d(_ConvTranspose):
    """(N, C_in, H, W) -> (N, C_out, H_out, W_out), each size as in ConvTranspose1d."""

    _tuple, _function = staticmethod(_pair), Named("conv_transpose2d")


class ConvTranspose3d(_ConvTranspose):
    """(N, C_in, D, H, W) -> (N, C_out, D_out, H_out, W_out), each size as in ConvTranspose1d."""

    _tuple, _function = staticmethod(_triple), Named("conv_transpose3d")


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution that takes `in_channels` from its first input."""

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        ends = (self.in_channels, self.out_channels // self.groups)
        if not self.transposed:
            ends = (self.out_channels, self.in_channels // self.groups)
        self.weight.materialize((*ends, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        spatial = self._get_num_spatial_dims()
        if input.dim() not in (spatial + 1, spatial + 2):
            raise RuntimeError(f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to "
                               f"{type(self).__name__}, but got input of size: {input.shape}")
        return input.shape[1] if input.dim() == spatial + 2 else input.shape[0]

    def _get_num_spatial_dims(self) -> int:
        return len(self.kernel_size)


class _LazyConv(_LazyConvXdMixin):
    def __init__(self, out_channels: int, kernel_size: _size_any_t, stride: _size_any_t = 1, padding: str | _size_any_t = 0, dilation: _size_any_t = 1,
                 groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(self, out_channels: int, kernel_size: _size_any_t, stride: _size_any_t = 1, padding: _size_any_t = 0, output_padding: _size_any_t = 0,
                 groups: int = 1, bias: bool = True, dilation: _size_any_t = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode,
                         device, dtype)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d without `in_channels`."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d without `in_channels`."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d without `in_channels`."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """ConvTranspose1d without `in_channels`."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """ConvTranspose2d without `in_channels`."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """ConvTranspose3d without `in_channels`."""

    cls_to_become = ConvTranspose3d


own_forward(Conv1d, Conv2d, Conv3d)
