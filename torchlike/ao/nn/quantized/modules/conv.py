"""Convolutions with quantized inputs, weights and results."""
from __future__ import annotations

from typing import Any

from ....._core import dtype as dt
from ....._public import FUNCTIONS
from ....._tensor import Tensor
from .....nn.modules import conv as floats
from .....nn.modules.container import Sequential
from .....nn.modules.module import Module
from .....nn.modules.utils import _pair, _reverse_repeat_tuple, _single, _triple
from .....nn.utils.fusion import fuse_conv_bn_weights
from .....ops.creation import zeros
from .utils import Weighted


class _ConvNd(Weighted):
    """quint8 inputs (batch, in_channels, ...), a qint8 weight, and results of `scale` and `zero_point`."""

    _FLOAT_MODULE: type
    _FUSED = False  # with relu
    _tuple: Any = None

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
                 bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if padding_mode == "reflect" and self._tuple is _triple:
            raise AssertionError("Conv3d does not support reflection padding")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect"):
            raise ValueError(f"'padding_mode' {padding_mode} is not supported by quantized convolution")
        sizes = [self._tuple(x) for x in (kernel_size, stride, padding, dilation)]
        self.in_channels, self.out_channels, (self.kernel_size, self.stride, self.padding, self.dilation) = in_channels, out_channels, sizes
        self.groups, self.padding_mode, self.transposed, self.output_padding = groups, padding_mode, False, (0,) * len(self.stride)
        self.set_weight_bias(FUNCTIONS["_empty_affine_quantized"]([out_channels, in_channels // groups, *self.kernel_size], scale=1.0, zero_point=0, dtype=dt.qint8),
                             zeros(out_channels, dtype=dt.float32) if bias else None)

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Take another weight and bias."""
        from ....._quantized.convolution import PackedConv
        self._packed_params = PackedConv(w, b, self.stride, self.padding, self.dilation, self.groups)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params.weight, self._packed_params.bias

    def forward(self, input: Tensor) -> Tensor:
        """The convolution."""
        if input.ndim != len(self.kernel_size) + 2:
            raise ValueError(f"Input shape must be `(N, C, {', '.join('DHL'[-len(self.kernel_size):])})`!")
        return self._packed_params.run(input, self.scale, self.zero_point, self._FUSED, self.padding_mode, list(_reverse_repeat_tuple(self.padding, 2)))

    def _get_name(self) -> str:
        return f"QuantizedConv{'ReLU' * self._FUSED}{len(self.kernel_size)}d"

    def extra_repr(self) -> str:
        """Sizes, scales, and what is not as usual."""
        n = len(self.kernel_size)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        more = [(f"padding={self.padding}", self.padding != (0,) * n), (f"dilation={self.dilation}", self.dilation != (1,) * n),
                (f"groups={self.groups}", self.groups != 1), ("bias=False", self.bias() is None)]
        return ", ".join([text, *(t for t, said in more if said)])

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight_bias()
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *others: Any) -> None:
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        super()._load_from_state_dict(state_dict, prefix, *others)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> _ConvNd:
        """The quantized form of an observed convolution. AssertionError for another module."""
        trained = hasattr(mod, "weight_fake_quant")
        if not trained and type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__} but got: {type(mod).__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined.")
        observer = mod.weight_fake_quant if trained else mod.qconfig.weight()
        layer = mod[0] if cls._FUSED and not trained else mod
        if hasattr(layer, "bn"):
            bn = layer.bn
            layer.weight, layer.bias = fuse_conv_bn_weights(layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
        observer(layer.weight)
        if observer.dtype is not dt.qint8:
            raise AssertionError(f"Weight observer must have a dtype of qint8, got {observer.dtype}")
        return cls._like(layer)._take(layer, observer, mod)

    @classmethod
    def _like(cls, layer: Module) -> _ConvNd:
        return cls(layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.groups, layer.bias is not None,
                   layer.padding_mode)

    @classmethod
    def from_reference(cls, ref_qconv: Module, output_scale: Any, output_zero_point: Any) -> _ConvNd:
        """The quantized form of a reference layer (a fused one's first part), with results of this scale."""
        layer = ref_qconv[0] if isinstance(ref_qconv, Sequential) else ref_qconv
        return cls._of_reference(cls._like(layer), layer, output_scale, output_zero_point)


class Conv1d(_ConvNd):
    """torch.nn.Conv1d of quantized tensors."""

    _FLOAT_MODULE, _tuple = floats.Conv1d, staticmethod(_single)


class Conv2d(_ConvNd):
    """torch.nn.Conv2d of quantized tensors."""

    _FLOAT_MODULE, _tuple = floats.Conv2d, staticmethod(_pair)


class Conv3d(_ConvNd):
    """torch.nn.Conv3d of quantized tensors."""

    _FLOAT_MODULE, _tuple = floats.Conv3d, staticmethod(_triple)
