"""torch.ao.nn.intrinsic.qat: layers that round their weights, with ReLU."""
from __future__ import annotations

from ....._tensor import Tensor
from ...qat import modules as qat
from ..modules import fused
from .normalized import (
    ConvBn1d,
    ConvBn2d,
    ConvBn3d,
    ConvBnReLU1d,
    ConvBnReLU2d,
    ConvBnReLU3d,
    LinearBn1d,
    freeze_bn_stats,
    update_bn_stats,
)

__all__ = ["ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearReLU",
           "freeze_bn_stats", "update_bn_stats"]


class ConvReLU1d(qat.Conv1d):
    """Conv1d with a rounded weight, and ReLU."""

    _FLOAT_MODULE = fused.ConvReLU1d

    def forward(self, input: Tensor) -> Tensor:
        """relu of the convolution."""
        return super().forward(input).relu()


class ConvReLU2d(qat.Conv2d):
    """Conv2d with a rounded weight, and ReLU."""

    _FLOAT_MODULE = fused.ConvReLU2d

    def forward(self, input: Tensor) -> Tensor:
        """relu of the convolution."""
        return super().forward(input).relu()


class ConvReLU3d(qat.Conv3d):
    """Conv3d with a rounded weight, and ReLU."""

    _FLOAT_MODULE = fused.ConvReLU3d

    def forward(self, input: Tensor) -> Tensor:
        """relu of the convolution."""
        return super().forward(input).relu()


class LinearReLU(qat.Linear):
    """Linear with a rounded weight, and ReLU."""

    _FLOAT_MODULE = fused.LinearReLU

    def forward(self, input: Tensor) -> Tensor:
        """relu of the products."""
        return super().forward(input).relu()
