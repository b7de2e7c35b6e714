"""Layers with quantized weights and float inputs, with ReLU."""
from __future__ import annotations

from typing import Any

from ......._core import dtype as dt
from ......._tensor import Tensor
from .....quantized.dynamic.modules import linear
from ....modules import fused

__all__ = ["LinearReLU"]


class LinearReLU(linear.Linear):
    """Linear and ReLU of float32 inputs, which are quantized as they come."""

    _FLOAT_MODULE = fused.LinearReLU

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = dt.qint8) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """relu of the products."""
        return super().forward(x).relu()

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"
