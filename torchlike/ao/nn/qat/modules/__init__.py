"""Layers that round their weights as quantized ones would, for training."""
from __future__ import annotations

from typing import Any

from ....._tensor import Tensor
from .....nn import functional
from .....nn.modules import conv, linear
from .....nn.modules.activation import ReLU
from .....nn.modules.module import Module
from .....nn.parameter import Parameter
from ... import _sizes
from ...intrinsic.modules import _FusedModule

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]


class _Rounded:
    """`weight_fake_quant` is made of the configuration's `weight`."""

    _FLOAT_MODULE: type

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig, self.weight_fake_quant = qconfig, qconfig.weight()

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Module:
        """The form for training of a layer that has a `qconfig`, with its parameters. AssertionError for another module."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}, got {type(mod).__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid qconfig")
        qconfig = mod.qconfig
        layer = mod[0] if isinstance(mod, _FusedModule) else mod
        made = cls(*cls._sizes(layer), qconfig=qconfig)
        made.weight, made.bias = layer.weight, layer.bias
        return made

    def to_float(self) -> Module:
        """The layer without rounding, with ReLU behind where this one has it."""
        fused = issubclass(self._FLOAT_MODULE, _FusedModule)
        layer = (self._FLOAT_MODULE._kinds[0] if fused else self._FLOAT_MODULE)(*self._sizes(self))
        layer.weight = Parameter(self.weight.detach())
        if self.bias is not None:
            layer.bias = Parameter(self.bias.detach())
        return (self._FLOAT_MODULE(layer, ReLU()) if fused else layer).train(self.training)


class Linear(_Rounded, linear.Linear):
    """torch.nn.Linear with a rounded weight."""

    _FLOAT_MODULE = linear.Linear
    _sizes = staticmethod(_sizes.of_linear)

    def forward(self, input: Tensor) -> Tensor:
        """The products."""
        return functional.linear(input, self.weight_fake_quant(self.weight), self.bias)


class _Conv(_Rounded):
    _sizes = staticmethod(_sizes.of_conv)

    def forward(self, input: Tensor) -> Tensor:
        """The convolution."""
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)


class Conv1d(_Conv, conv.Conv1d):
    """torch.nn.Conv1d with a rounded weight."""

    _FLOAT_MODULE = conv.Conv1d


class Conv2d(_Conv, conv.Conv2d):
    """torch.nn.Conv2d with a rounded weight."""

    _FLOAT_MODULE = conv.Conv2d


class Conv3d(_Conv, conv.Conv3d):
    """torch.nn.Conv3d with a rounded weight."""

    _FLOAT_MODULE = conv.Conv3d
