"""Float layers that know how their weight is to be quantized, and use it rounded so."""
from __future__ import annotations

from typing import Any

from ......_core import dtype as dt
from ......_public import FUNCTIONS
from ......_qscheme import SCHEMES
from ......_tensor import Tensor
from ......nn import functional
from ......nn.modules import conv, linear
from ......nn.modules.module import Module
from ......nn.parameter import Parameter
from ......ops.from_data import tensor
from .... import _sizes

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]
_INTEGERS = (dt.quint8, dt.qint8, dt.qint32)


class _Reference(Module):
    """`weight_qscheme`, `weight_dtype`, `weight_scale`, `weight_zero_point`, `weight_axis`; scheme None for float16 and float32."""

    _IS_REFERENCE = True

    def _init_weight_qparams(self, weight_qparams: dict[str, Any] | None, device: Any) -> None:
        given = weight_qparams or {"qscheme": SCHEMES["per_tensor_affine"], "dtype": dt.quint8, "scale": 1.0, "zero_point": 0}
        self.weight_qscheme, self.weight_dtype = given["qscheme"], given["dtype"]
        if self.weight_qscheme is not None and self.weight_qscheme.name not in ("per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams"):
            raise AssertionError(f"qscheme: {self.weight_qscheme} is not supported in reference quantized {self._get_name()}")
        known = self.weight_dtype in _INTEGERS
        for name, none, kind in (("scale", 1.0, dt.float32), ("zero_point", 0, dt.int32), ("axis", 0, dt.int32)):
            x = given.get(name, none) if known else none
            self.register_buffer(f"weight_{name}", x.detach().clone() if isinstance(x, Tensor) else tensor(x, dtype=kind, device=device))
        self.is_decomposed, self.weight_axis_int = False, int(self.weight_axis)
        self.weight_quant_min, self.weight_quant_max = given.get("quant_min"), given.get("quant_max")

    def get_quantized_weight(self) -> Tensor:
        """The weight, quantized (rounded to float16 where that is its dtype)."""
        if self.weight_dtype is dt.float16:
            return self.weight.to(dt.float16)
        if self.weight_qscheme is None:
            return self.weight
        if self.weight_qscheme.name.startswith("per_tensor"):
            return FUNCTIONS["quantize_per_tensor"](self.weight.detach(), float(self.weight_scale), int(self.weight_zero_point), self.weight_dtype)
        return FUNCTIONS["quantize_per_channel"](self.weight.detach(), self.weight_scale, self.weight_zero_point, self.weight_axis_int, self.weight_dtype)

    def get_weight(self) -> Tensor:
        """The same as floats."""
        weight = self.get_quantized_weight()
        return weight.dequantize() if weight.is_quantized else weight.to(self.weight.dtype)

    def _take(self, layer: Module) -> Module:
        self.weight = Parameter(layer.weight.detach())
        if layer.bias is not None:
            self.bias = Parameter(layer.bias.detach())
        return self

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight_qscheme"], destination[prefix + "weight_dtype"] = self.weight_qscheme, self.weight_dtype

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *lists: Any) -> None:
        for name in ("qscheme", "dtype", "scale", "zero_point"):
            if prefix + f"weight_{name}" in state_dict:
                setattr(self, f"weight_{name}", state_dict.pop(prefix + f"weight_{name}"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)


class Linear(_Reference, linear.Linear):
    """torch.nn.Linear with its weight rounded."""

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, device: Any = None, dtype: Any = None,
                 weight_qparams: dict[str, Any] | None = None) -> None:
        linear.Linear.__init__(self, in_features, out_features, bias_, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x: Tensor) -> Tensor:
        """The products."""
        return functional.linear(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear: Module, weight_qparams: dict[str, Any]) -> Linear:
        """That of a float layer, and of what is known about its weight."""
        weight = float_linear.weight
        return cls(*_sizes.of_linear(float_linear), weight.device, weight.dtype, weight_qparams)._take(float_linear)


class _Conv(_Reference):
    _FLOAT: type

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
                 bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None, weight_qparams: dict[str, Any] | None = None) -> None:
        self._FLOAT.__init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def forward(self, x: Tensor) -> Tensor:
        """The convolution."""
        run = getattr(functional, f"conv{len(self.kernel_size)}d")
        return run(x, self.get_weight(), self.bias, self.stride, self.padding, self.dilation, self.groups)

    @classmethod
    def from_float(cls, float_conv: Module, weight_qparams: dict[str, Any]) -> Module:
        """That of a float layer, and of what is known about its weight."""
        weight = float_conv.weight
        return cls(*_sizes.of_conv(float_conv), weight.device, weight.dtype, weight_qparams)._take(float_conv)


class Conv1d(_Conv, conv.Conv1d):
    """torch.nn.Conv1d with its weight rounded."""

    _FLOAT = conv.Conv1d


class Conv2d(_Conv, conv.Conv2d):
    """torch.nn.Conv2d with its weight rounded."""

    _FLOAT = conv.Conv2d


class Conv3d(_Conv, conv.Conv3d):
    """torch.nn.Conv3d with its weight rounded."""

    _FLOAT = conv.Conv3d
