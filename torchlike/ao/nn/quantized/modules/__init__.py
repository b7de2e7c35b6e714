"""Quantized modules."""
from __future__ import annotations

from typing import Any

from ....._core import dtype as dt
from ....._public import FUNCTIONS
from ....._tensor import Tensor
from .....nn.modules.dropout import Dropout as FloatDropout
from .....nn.modules.module import Module
from .....ops.from_data import tensor
from .activation import ELU, BatchNorm2d, BatchNorm3d, Hardswish, LeakyReLU, ReLU6
from .conv import Conv1d, Conv2d, Conv3d
from .functional_modules import QFunctional
from .linear import Linear
from .normalization import GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm, PReLU, Sigmoid, Softmax

__all__ = ["ELU", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "DeQuantize", "Dropout", "GroupNorm", "Hardswish", "InstanceNorm1d", "InstanceNorm2d",
           "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear", "PReLU", "QFunctional", "Quantize", "ReLU6", "Sigmoid", "Softmax"]


class Quantize(Module):
    """Floats quantized by one scale."""

    def __init__(self, scale: float, zero_point: int, dtype: Any, factory_kwargs: dict | None = None) -> None:
        super().__init__()
        self.register_buffer("scale", tensor([scale], **(factory_kwargs or {})))
        self.register_buffer("zero_point", tensor([zero_point], dtype=dt.int64))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        """X, quantized."""
        return FUNCTIONS["quantize_per_tensor"](X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> Quantize:
        """What an observed QuantStub becomes."""
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError(f"Module {type(mod).__name__} must have activation_post_process attribute")
        scale, zero_point = mod.activation_post_process.calculate_qparams()
        return Quantize(scale.float().item(), zero_point.long().item(), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        """The scale."""
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(Module):
    """Quantized tensors as floats."""

    def forward(self, Xq: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        """The numbers."""
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """What a DeQuantStub becomes."""
        return DeQuantize()


class Dropout(FloatDropout):
    """Quantized models are for inference, where nothing is dropped."""

    def forward(self, input: Tensor) -> Tensor:
        """input."""
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Dropout:
        """The form of a Dropout in a quantized model."""
        return cls(mod.p, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Module, scale: Any, zero_point: Any) -> Dropout:
        """The same: nothing is scaled anew."""
        return cls(mod.p, mod.inplace)
