"""Layers that round their weights and the normalizations behind them, for training.

The weight that is rounded is the one that the layer will have once the normalization is part of it: times `bn.weight` over the running
deviation. What comes out is divided by that again, so that the normalization sees the layer's own results.
"""
from __future__ import annotations

import math
from typing import Any

from ....._tensor import Tensor
from .....nn import functional, init
from .....nn.modules import batchnorm, conv, linear
from .....nn.modules.activation import ReLU
from .....nn.modules.module import Module
from .....nn.modules.utils import _pair, _single, _triple
from .....nn.parameter import Parameter
from .....nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights
from .....ops.creation import empty, zeros
from ... import _sizes
from ..modules import fused


class _Normalized:
    """A layer with `bn` and `weight_fake_quant`; `freeze_bn` keeps the running statistics as they are."""

    _FLOAT_MODULE: type
    _version = 2

    def _begin(self, norm: type, outputs: int, bias: bool, eps: float, momentum: float, freeze_bn: bool, qconfig: Any) -> None:
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = norm(outputs, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        if bias:
            self.bias = Parameter(empty(outputs))
        else:
            self.register_parameter("bias", None)
        self.reset_bn_parameters()
        if self.training and not freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()

    def reset_running_stats(self) -> None:
        """Statistics as if no input had come."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """The same, and parameters of the normalization drawn anew."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)

    def update_bn_stats(self) -> Module:
        """Inputs count in the statistics from now on."""
        self.freeze_bn, self.bn.training = False, True
        return self

    def freeze_bn_stats(self) -> Module:
        """Inputs count no more."""
        self.freeze_bn, self.bn.training = True, False
        return self

    def train(self, mode: bool = True) -> Module:
        """Frozen statistics stay frozen."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _run(self, input: Tensor) -> Tensor:
        factor = self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()
        weight = self.weight_fake_quant(self.weight * factor.reshape(-1, *[1] * (self.weight.ndim - 1)))
        along = (1, -1, *[1] * (self.weight.ndim - 2))
        made = self._products(input, weight, zeros(len(factor), device=weight.device)) / factor.reshape(along)
        if self.bias is not None:
            made = made + self.bias.reshape(along)
        return self.bn(made)

    def forward(self, input: Tensor) -> Tensor:
        """The layer's results, normalized."""
        return self._run(input)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Module:
        """The form for training of a fused pair that has a `qconfig`, with its parameters. AssertionError for another module."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError(f"Input float module must have a valid {'config' if cls is LinearBn1d else 'qconfig'}")
        layer, bn = mod[0], mod[1]
        made = cls(*cls._sizes(layer), bn.eps, bn.momentum, False, mod.qconfig)
        made.weight, made.bias = layer.weight, layer.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(made.bn, name, getattr(bn, name))
        return made


class _ConvBn(_Normalized):
    _tuple: Any
    _sizes = staticmethod(_sizes.of_conv)
    _RELU: type | None = None  # the float module with ReLU that to_float makes

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
                 bias: bool | None = None, padding_mode: str = "zeros", eps: float = 1e-05, momentum: float = 0.1, freeze_bn: bool = False, qconfig: Any = None) -> None:
        pair = type(self)._tuple
        conv._ConvNd.__init__(self, in_channels, out_channels, pair(kernel_size), pair(stride), pair(padding), pair(dilation), False, pair(0), groups, False,
                              padding_mode)
        self._begin(self._FLOAT_MODULE._kinds[1], out_channels, bool(bias), eps, momentum, freeze_bn, qconfig)

    def reset_bn_parameters(self) -> None:
        """Statistics as if no input had come, parameters of the normalization and the bias drawn anew."""
        super().reset_bn_parameters()
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def _products(self, input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return self._conv_forward(input, weight, bias.to(input.dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The convolution, normalized."""
        made = self._run(input)
        return made if self._RELU is None else functional.relu(made)

    def to_float(self) -> Module:
        """The convolution with the normalization in its weight and bias."""
        bn = self.bn
        made = self._FLOAT_MODULE._kinds[0](*self._sizes(self))
        made.weight, made.bias = fuse_conv_bn_weights(self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
        return (made if self._RELU is None else self._RELU(made, ReLU())).train(self.training)


class ConvBn1d(_ConvBn, conv.Conv1d):
    """Conv1d with a rounded weight, and BatchNorm1d."""

    _FLOAT_MODULE, _tuple = fused.ConvBn1d, staticmethod(_single)


class ConvBnReLU1d(ConvBn1d):
    """The same with ReLU."""

    _FLOAT_MODULE, _RELU = fused.ConvBnReLU1d, fused.ConvReLU1d


class ConvBn2d(_ConvBn, conv.Conv2d):
    """Conv2d with a rounded weight, and BatchNorm2d."""

    _FLOAT_MODULE, _tuple = fused.ConvBn2d, staticmethod(_pair)


class ConvBnReLU2d(ConvBn2d):
    """The same with ReLU."""

    _FLOAT_MODULE, _RELU = fused.ConvBnReLU2d, fused.ConvReLU2d


class ConvBn3d(_ConvBn, conv.Conv3d):
    """Conv3d with a rounded weight, and BatchNorm3d."""

    _FLOAT_MODULE, _tuple = fused.ConvBn3d, staticmethod(_triple)


class ConvBnReLU3d(ConvBn3d):
    """The same with ReLU."""

    _FLOAT_MODULE, _RELU = fused.ConvBnReLU3d, fused.ConvReLU3d


class LinearBn1d(_Normalized, linear.Linear):
    """Linear with a rounded weight, and BatchNorm1d."""

    _FLOAT_MODULE = fused.LinearBn1d
    _sizes = staticmethod(_sizes.of_linear)

    def __init__(self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-05, momentum: float = 0.1, freeze_bn: bool = False,
                 qconfig: Any = None) -> None:
        linear.Linear.__init__(self, in_features, out_features, bias)
        self._begin(batchnorm.BatchNorm1d, out_features, bias, eps, momentum, freeze_bn, qconfig)

    def _products(self, input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.linear(input, weight, bias)

    def to_float(self) -> Module:
        """The layer with the normalization in its weight and bias."""
        bn, made = self.bn, linear.Linear(self.in_features, self.out_features)
        made.weight, made.bias = fuse_linear_bn_weights(self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
        return made


def update_bn_stats(mod: Module) -> None:
    """Inputs count in the statistics of a convolution of this file: for `model.apply`."""
    if isinstance(mod, _ConvBn):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Module) -> None:
    """Inputs count no more: for `model.apply`."""
    if isinstance(mod, _ConvBn):
        mod.freeze_bn_stats()
