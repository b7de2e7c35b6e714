"""Normalizations and activations of quantized tensors whose results have a scale of their own."""
from __future__ import annotations

import warnings
from typing import Any

from ....._core import dtype as dt
from ....._core.history import outside
from ....._public import FUNCTIONS
from ....._tensor import Tensor
from .....nn import functional
from .....nn.modules import activation, instancenorm, normalization
from .....nn.modules.module import Module
from .....ops.from_data import tensor
from .activation import rescaled
from .utils import observed


class _Normalization:
    """The weight and the bias stay floats."""

    def _finish(self, weight: Any, bias: Any, scale: float, zero_point: int, device: Any, dtype: Any) -> None:
        self.weight, self.bias = weight, bias
        self.register_buffer("scale", tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", tensor(zero_point, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The normalized numbers."""
        return rescaled(super().forward(input.dequantize()), input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Module:
        """The quantized form of an observed module."""
        return cls.from_reference(mod, *observed(mod))

    @classmethod
    def from_reference(cls, mod: Module, scale: Any, zero_point: Any) -> Module:
        """The quantized form of a float module, with results of this scale."""
        return cls(*cls._sizes(mod), mod.weight, mod.bias, float(scale), int(zero_point), *cls._settings(mod))

    @staticmethod
    def _settings(mod: Module) -> tuple:
        return mod.eps, mod.affine


class LayerNorm(_Normalization, normalization.LayerNorm):
    """torch.nn.LayerNorm of quantized tensors."""

    def __init__(self, normalized_shape: Any, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-5, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__(normalized_shape, eps=eps, elementwise_affine=elementwise_affine, device=device, dtype=dtype)
        self._finish(weight, bias, scale, zero_point, device, dtype)

    @staticmethod
    def _sizes(mod: Module) -> tuple:
        return (mod.normalized_shape,)

    @staticmethod
    def _settings(mod: Module) -> tuple:
        return mod.eps, mod.elementwise_affine


class GroupNorm(_Normalization, normalization.GroupNorm):
    """torch.nn.GroupNorm of quantized tensors."""

    def __init__(self, num_groups: int, num_channels: int, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-5, affine: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self._finish(weight, bias, scale, zero_point, device, dtype)

    @staticmethod
    def _sizes(mod: Module) -> tuple:
        return mod.num_groups, mod.num_channels


class _InstanceNorm(_Normalization):
    def __init__(self, num_features: int, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        self._finish(weight, bias, scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The normalized numbers; running statistics are not used."""
        made = functional.instance_norm(input.dequantize(), None, None, self.weight, self.bias, True, 0.0, self.eps)
        return rescaled(made, input, self.scale, self.zero_point)

    @staticmethod
    def _sizes(mod: Module) -> tuple:
        return (mod.num_features,)

    @staticmethod
    def _settings(mod: Module) -> tuple:
        return mod.eps, mod.affine


class InstanceNorm1d(_InstanceNorm, instancenorm.InstanceNorm1d):
    """torch.nn.InstanceNorm1d of quantized tensors."""


class InstanceNorm2d(_InstanceNorm, instancenorm.InstanceNorm2d):
    """torch.nn.InstanceNorm2d of quantized tensors."""


class InstanceNorm3d(_InstanceNorm, instancenorm.InstanceNorm3d):
    """torch.nn.InstanceNorm3d of quantized tensors."""


class Sigmoid(activation.Sigmoid):
    """torch.nn.Sigmoid of quantized tensors."""

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Tensor) -> Tensor:
        """The function's values."""
        return rescaled(input.dequantize().sigmoid(), input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Sigmoid:
        """The quantized form of an observed module."""
        return cls(*observed(mod))


class Softmax(activation.Softmax):
    """torch.nn.Softmax of quantized tensors."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__(dim)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        """The function's values."""
        return rescaled(functional.softmax(input.dequantize(), self.dim), input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> Softmax:
        """The quantized form of an observed module."""
        return Softmax(mod.dim, *observed(mod))

    @classmethod
    def from_reference(cls, mod: Module, scale: Any, zero_point: Any) -> Softmax:
        """The quantized form of a float module, with results of this scale."""
        return cls(mod.dim, float(scale), int(zero_point))


class PReLU(Module):
    """torch.nn.PReLU of quantized tensors, with a quantized weight."""

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1) -> None:
        super().__init__()
        self.num_parameters, self.scale, self.zero_point = num_parameters, output_scale, output_zero_point
        self.set_weight(FUNCTIONS["quantize_per_tensor"](FUNCTIONS["randn"](num_parameters), 1.0, 0, dt.quint8))

    def set_weight(self, w: Tensor) -> None:
        """Take another weight."""
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        """The function's values."""
        return rescaled(functional.prelu(input.dequantize(), self.weight.dequantize()), input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> PReLU:
        """The quantized form of an observed module."""
        return cls.from_reference(mod, *observed(mod))

    @classmethod
    def from_reference(cls, mod: Module, scale: Any, zero_point: Any) -> PReLU:
        """The quantized form of a float module that has a `qconfig`, with results of this scale."""
        made, weight, observer = cls(float(scale), int(zero_point), mod.num_parameters), mod.weight.detach().float(), mod.qconfig.weight()
        observer(weight)
        if observer.dtype is not dt.quint8:
            warnings.warn(f"PReLU's weight observer should have dtype quint8 but got {observer.dtype}", stacklevel=outside())
        found = observer.calculate_qparams()
        made.set_weight(FUNCTIONS["quantize_per_tensor"](weight, float(found[0]), int(found[1]), dt.quint8))
        return made
