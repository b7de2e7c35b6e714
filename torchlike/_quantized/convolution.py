"""Convolutions of quint8 inputs with qint8 weights."""
from __future__ import annotations

import math

from .._core import dtype as dt
from .._tensor import Tensor
from ..nn import functional
from .linear import EXACT, weight_scales
from .quantizers import PerTensor
from .requantizing import inputs, requantized
from .tensor import Quantized


class PackedConv:
    """A weight (out, in / groups, *kernel), a bias, and how the kernel moves."""

    def __init__(self, weight: Quantized, bias: Tensor | None, stride: tuple, padding: tuple, dilation: tuple, groups: int):
        if not isinstance(weight, Quantized):
            raise NotImplementedError(f"Could not run 'quantized::conv_prepack' with arguments from the '{weight.device.type.upper()}' backend.")
        self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups = weight, bias, tuple(stride), tuple(padding), tuple(dilation), groups
        self._scales = weight_scales(weight)
        self._kernel: Tensor | None = None

    def kernel(self) -> Tensor:
        """The integers without zero points, of a type that holds every sum of products."""
        if self._kernel is None:
            w = self.weight._quantizer.centered(self.weight._held)
            exact = math.prod(w.shape[1:]) * 255 * int(w.abs().max()) < EXACT if w.numel() else True
            self._kernel = w.to(dt.float32 if exact else dt.float64)
        return self._kernel

    def run(self, x: Quantized, scale: float, zero_point: int, relu: bool, padding_mode: str = "zeros", around: list | None = None) -> Quantized:
        """The convolution, with another scale."""
        n = self.weight.ndim - 2
        quantizer = inputs(x, f"conv{n}d{'_relu' * relu}")
        kernel = self.kernel()
        numbers = quantizer.centered(x._held).to(kernel.dtype)
        padding = self.padding
        if padding_mode != "zeros":
            numbers, padding = functional.pad(numbers, around, mode=padding_mode), (0,) * n
        total = (functional.conv1d, functional.conv2d, functional.conv3d)[n - 1](numbers, kernel, None, self.stride, padding, self.dilation, self.groups)
        return requantized(total.to(dt.float64), quantizer.scale, self._scales, self.bias, PerTensor(float(scale), int(zero_point), dt.quint8), relu)
