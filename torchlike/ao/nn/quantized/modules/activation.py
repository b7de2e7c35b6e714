"""Activations and normalizations of quantized tensors: computed on the numbers, with a scale of their own for the results."""
from __future__ import annotations

from typing import Any

from ....._tensor import Tensor
from .....nn import functional
from .....nn.modules import activation, batchnorm
from .....nn.modules.container import Sequential
from .....nn.modules.module import Module
from .....ops.from_data import tensor
from .utils import observed


def rescaled(numbers: Tensor, like: Tensor, scale: Any, zero_point: Any) -> Tensor:
    """Numbers quantized to the type of a quantized tensor."""
    from ....._quantized.quantizers import PerTensor
    from ....._quantized.tensor import quantized
    made = PerTensor(float(scale), int(zero_point), like.dtype)
    return quantized(made.quantize(numbers.detach()), made)


class ReLU6(activation.ReLU6):
    """Numbers from 0 to 6, of the input's scale."""

    def forward(self, input: Tensor) -> Tensor:
        """The numbers within bounds."""
        return functional.relu6(input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """The quantized form."""
        return ReLU6(mod.inplace)


class Hardswish(activation.Hardswish):
    """torch.nn.Hardswish of quantized tensors."""

    def __init__(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.register_buffer("scale", tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", tensor(zero_point, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The function's values."""
        return rescaled(functional.hardswish(input.dequantize()), input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedHardswish"

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> Hardswish:
        """The quantized form of an observed module."""
        return Hardswish(*observed(mod))

    @classmethod
    def from_reference(cls, mod: Module, scale: Any, zero_point: Any) -> Hardswish:
        """The quantized form of a float module, with results of this scale."""
        return cls(float(scale), int(zero_point))


class ELU(activation.ELU):
    """torch.nn.ELU of quantized tensors."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        """The function's values."""
        return rescaled(functional.elu(input.dequantize(), self.alpha), input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedELU"

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> ELU:
        """The quantized form of an observed module."""
        return ELU(*observed(mod), mod.alpha)

    @classmethod
    def from_reference(cls, mod: Module, scale: Any, zero_point: Any) -> ELU:
        """The quantized form of a float module, with results of this scale."""
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(activation.LeakyReLU):
    """torch.nn.LeakyReLU of quantized tensors."""

    def __init__(self, scale: float, zero_point: int, negative_slope: float = 1e-2, inplace: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__(negative_slope, inplace)
        self.register_buffer("scale", tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", tensor(zero_point, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The function's values."""
        return rescaled(functional.leaky_relu(input.dequantize(), self.negative_slope), input, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> LeakyReLU:
        """The quantized form of an observed module."""
        return cls(*observed(mod), mod.negative_slope, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Module, scale: Any, zero_point: Any) -> LeakyReLU:
        """The quantized form of a float module, with results of this scale."""
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class _BatchNorm:
    """The statistics are those of training; inputs are not counted."""

    _RELU = False  # behind it

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self.register_buffer("scale", tensor(1.0, device=device, dtype=dtype))
        self.register_buffer("zero_point", tensor(0, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The normalized numbers."""
        made = functional.batch_norm(input.dequantize(), self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
        return rescaled(functional.relu(made) if self._RELU else made, input, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Module:
        """The quantized form of an observed module."""
        return cls.from_reference(mod[0] if isinstance(mod, Sequential) else mod, *mod.activation_post_process.calculate_qparams())

    @classmethod
    def from_reference(cls, bn: Module, output_scale: Any, output_zero_point: Any) -> Module:
        """The quantized form of a float module, with results of this scale."""
        made = cls(bn.num_features, bn.eps)
        made.weight, made.bias, made.running_mean, made.running_var = bn.weight, bn.bias, bn.running_mean, bn.running_var
        made.scale, made.zero_point = output_scale, output_zero_point
        return made


class BatchNorm2d(_BatchNorm, batchnorm.BatchNorm2d):
    """torch.nn.BatchNorm2d of quantized tensors."""

    def _get_name(self) -> str:
        return "QuantizedBatchNorm2d"


class BatchNorm3d(_BatchNorm, batchnorm.BatchNorm3d):
    """torch.nn.BatchNorm3d of quantized tensors."""

    def _get_name(self) -> str:
        return "QuantizedBatchNorm3d"
