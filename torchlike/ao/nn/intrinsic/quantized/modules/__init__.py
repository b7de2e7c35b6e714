"""Quantized layers with ReLU."""
from __future__ import annotations

from typing import Any

from ......_tensor import Tensor
from .....nn.quantized.modules import activation, conv, linear
from ...modules import fused

__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]


class ConvReLU1d(conv.Conv1d):
    """Conv1d and ReLU of quantized tensors."""

    _FLOAT_MODULE, _FUSED = fused.ConvReLU1d, True


class ConvReLU2d(conv.Conv2d):
    """Conv2d and ReLU of quantized tensors."""

    _FLOAT_MODULE, _FUSED = fused.ConvReLU2d, True


class ConvReLU3d(conv.Conv3d):
    """Conv3d and ReLU of quantized tensors."""

    _FLOAT_MODULE, _FUSED = fused.ConvReLU3d, True


class LinearReLU(linear.Linear):
    """Linear and ReLU of quantized tensors."""

    _FLOAT_MODULE = (fused.LinearReLU,)

    def forward(self, x: Tensor) -> Tensor:
        """relu of the products."""
        return self._packed_params._packed_params.static(x, self.scale, self.zero_point, True)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"


class _BNReLU:
    _RELU = True

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_reference(cls, bn_relu: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantized form of the float pair, with results of this scale."""
        return super().from_reference(bn_relu[0] if isinstance(bn_relu, fused._FusedModule) else bn_relu, output_scale, output_zero_point)


class BNReLU2d(_BNReLU, activation.BatchNorm2d):
    """BatchNorm2d and ReLU of quantized tensors."""

    _FLOAT_MODULE = fused.BNReLU2d


class BNReLU3d(_BNReLU, activation.BatchNorm3d):
    """BatchNorm3d and ReLU of quantized tensors."""

    _FLOAT_MODULE = fused.BNReLU3d
