"""Quantized layers with ReLU."""
from __future__ import annotations

from ......_tensor import Tensor
from .....nn.quantized.modules import conv, linear
from ...modules import fused

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]


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
