"""Layers and what follows them as one module, so that they are observed and quantized together."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....._tensor import Tensor
from .....nn.modules import activation, batchnorm, conv
from .....nn.modules.container import Sequential
from .....nn.modules.linear import Linear
from .....nn.utils.parametrize import type_before_parametrizations


class _FusedModule(Sequential):
    _kinds: tuple = ()

    def __init__(self, *modules: Any) -> None:
        kinds = tuple(map(type_before_parametrizations, modules))
        if kinds != self._kinds:
            raise AssertionError("Incorrect types for input modules: " + " and ".join(k.__name__ for k in kinds))
        super().__init__(*modules)


class ConvReLU1d(_FusedModule):
    """Conv1d, ReLU."""

    _kinds = (conv.Conv1d, activation.ReLU)


class ConvReLU2d(_FusedModule):
    """Conv2d, ReLU."""

    _kinds = (conv.Conv2d, activation.ReLU)


class ConvReLU3d(_FusedModule):
    """Conv3d, ReLU."""

    _kinds = (conv.Conv3d, activation.ReLU)


class LinearReLU(_FusedModule):
    """Linear, ReLU."""

    _kinds = (Linear, activation.ReLU)


class ConvBn1d(_FusedModule):
    """Conv1d, BatchNorm1d."""

    _kinds = (conv.Conv1d, batchnorm.BatchNorm1d)


class ConvBnReLU1d(_FusedModule):
    """Conv1d, BatchNorm1d, ReLU."""

    _kinds = (conv.Conv1d, batchnorm.BatchNorm1d, activation.ReLU)


class ConvBn2d(_FusedModule):
    """Conv2d, BatchNorm2d."""

    _kinds = (conv.Conv2d, batchnorm.BatchNorm2d)


class ConvBnReLU2d(_FusedModule):
    """Conv2d, BatchNorm2d, ReLU."""

    _kinds = (conv.Conv2d, batchnorm.BatchNorm2d, activation.ReLU)


class ConvBn3d(_FusedModule):
    """Conv3d, BatchNorm3d."""

    _kinds = (conv.Conv3d, batchnorm.BatchNorm3d)


class ConvBnReLU3d(_FusedModule):
    """Conv3d, BatchNorm3d, ReLU."""

    _kinds = (conv.Conv3d, batchnorm.BatchNorm3d, activation.ReLU)


class BNReLU2d(_FusedModule):
    """BatchNorm2d, ReLU."""

    _kinds = (batchnorm.BatchNorm2d, activation.ReLU)


class BNReLU3d(_FusedModule):
    """BatchNorm3d, ReLU."""

    _kinds = (batchnorm.BatchNorm3d, activation.ReLU)


class LinearBn1d(_FusedModule):
    """Linear, BatchNorm1d."""

    _kinds = (Linear, batchnorm.BatchNorm1d)


class LinearLeakyReLU(_FusedModule):
    """Linear, LeakyReLU."""

    _kinds = (Linear, activation.LeakyReLU)


class LinearTanh(_FusedModule):
    """Linear, Tanh."""

    _kinds = (Linear, activation.Tanh)


class ConvAdd2d(_FusedModule):
    """Conv2d, and a function of two tensors (`torch.add`): `forward(x1, x2)` is add(conv(x1), x2)."""

    _kinds = (conv.Conv2d,)

    def __init__(self, conv: Any, add: Callable) -> None:
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The sum."""
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """Conv2d, a function of two tensors, ReLU: `forward(x1, x2)` is relu(add(conv(x1), x2))."""

    _kinds = (conv.Conv2d,)

    def __init__(self, conv: Any, add: Callable, relu: Any) -> None:
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """relu of the sum."""
        return self.relu(self.add(self[0](x1), x2))
