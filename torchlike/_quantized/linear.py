"""Products of float32 inputs with quantized weights: the inputs are quantized as they come, by a scale that fits them.

Sums of products of integers are exact, here by float32 products over so many columns that every partial sum is an integer which float32 holds. What follows
is rounded as in PyTorch's x86 kernels: one product with both scales, and the bias added without another rounding before it.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.registry import Op
from .._tensor import Tensor, apply
from ..ops.from_data import tensor
from ..ops.matmul import linear
from .kernels import places, single
from .qparams import choose_with
from .quantizers import PerChannel, PerTensor
from .requantizing import inputs, requantized
from .tensor import Quantized

EXACT = 1 << 24  # float32 holds every integer up to here


def _product(xp, q, matrix, largest):
    """`q @ matrix` of integers as doubles, exact: |q| <= 256, |matrix| <= largest."""
    columns = max(1, EXACT // (256 * largest))
    total = 0.0
    for start in range(0, q.shape[1], columns):
        total = total + xp.matmul(q[:, start:start + columns], matrix[start:start + columns]).astype(np.float64)
    return total


def _linear_dynamic(xp, x, matrix, scales, bias, largest, bound):
    flat = x.reshape(-1, x.shape[-1])
    scale, zero_point = choose_with(xp, flat.min().astype(np.float64), flat.max().astype(np.float64), 0, largest)
    scale = scale.astype(np.float32)
    q = (xp.clip(places(xp, flat, scale, zero_point, True), 0.0, 255.0) - zero_point).astype(np.float32)
    total = single(xp, _product(xp, q, matrix, bound))
    both = single(xp, scale.astype(np.float64) * scales.astype(np.float32).astype(np.float64))
    total = total * both
    if bias is not None:
        total = total + bias.astype(np.float64)
    return total.astype(np.float32).reshape(*x.shape[:-1], matrix.shape[1])


LINEAR_DYNAMIC = Op("quantized_linear_dynamic", _linear_dynamic, shape=lambda x, matrix, *others: ((*x.shape[:-1], matrix.shape[1]), dt.float32), vjp=False)


def _whole_product(xp, q, zero_point, matrix, bound):
    return _product(xp, (q.astype(np.int32) - xp.asarray(zero_point, np.int32)).astype(np.float32), matrix, bound)


PRODUCT = Op("quantized_product", _whole_product, shape=lambda q, zero_point, matrix, *others: ((q.shape[0], matrix.shape[1]), dt.float64), vjp=False)


def weight_scales(weight: Quantized) -> Tensor:
    """One for each output, or one for all."""
    quantizer = weight._quantizer
    return quantizer.scales if isinstance(quantizer, PerChannel) else tensor([quantizer.scale], dtype=dt.float64, device=weight.device)


class PackedLinear:
    """A weight (out, in) and a bias, ready for products: quantized, or rounded to float16."""

    def __init__(self, weight: Tensor, bias: Tensor | None, half: bool = False):
        self.weight, self.bias, self.half = weight, bias, half
        self._scales = None if half else weight_scales(weight)
        self._matrix: Tensor | None = None

    def matrix(self) -> Tensor:
        """The integers without their zero points (quantized), or the rounded numbers: float32 of shape (in, out)."""
        if self._matrix is None:
            weight = self.weight
            if self.half:
                self._matrix = weight.detach().clamp(-65504.0, 65504.0).to(dt.float16).to(dt.float32)
            else:
                self._matrix = weight._quantizer.centered(weight._held).to(dt.float32).t().contiguous()
        return self._matrix

    def _bound(self) -> int:
        """No integer of the matrix is larger."""
        quantizer = self.weight._quantizer
        return 128 if isinstance(quantizer, PerTensor) and quantizer.zero_point == 0 else 256

    def dynamic(self, x: Tensor, reduce_range: bool = False) -> Tensor:
        """The product with inputs (..., in) of float32, which become integers of 8 bits or, with `reduce_range`, of 7."""
        if x.ndim < 2:
            raise RuntimeError("The dimension of input tensor should be larger than or equal to 2")
        if x.dtype is not dt.float32:
            raise RuntimeError(f"expected scalar type Float but found {x.dtype.short}")
        if x.shape[-1] != self.weight.shape[1]:
            raise RuntimeError(f"The number of rows in the packB should be equal to K: {x.shape[-1]}")
        if self.half:
            return linear(x.detach(), self.matrix(), None if self.bias is None else self.bias.detach())
        if not x.numel():
            return x.new_zeros((*x.shape[:-1], self.weight.shape[0]))
        bias = None if self.bias is None else self.bias.detach()
        return apply(LINEAR_DYNAMIC, (x.detach(), self.matrix(), self._scales, bias), (127 if reduce_range else 255, self._bound()))

    def static(self, x: Quantized, scale: float, zero_point: int, relu: bool = False) -> Quantized:
        """The product with quint8 inputs (..., in), with another scale."""
        quantizer = inputs(x, "linear_relu" if relu else "linear")
        if x.shape[-1] != self.weight.shape[1]:
            raise RuntimeError(f"The number of rows in the packB should be equal to K: {x.shape[-1]}")
        total = apply(PRODUCT, (x._held.reshape(-1, x.shape[-1]), quantizer.zero_point, self.matrix()), (self._bound(),))
        made = requantized(total, quantizer.scale, self._scales, self.bias, PerTensor(float(scale), int(zero_point), dt.quint8), relu)
        return made.view(*x.shape[:-1], self.weight.shape[0])

    def __reduce__(self) -> tuple:
        from .._serialization.tensors import _rebuild_packed_linear
        return _rebuild_packed_linear, (self.weight, self.bias, self.half)

    def __repr__(self) -> str:
        return repr((self.weight, self.bias))


def pack(weight: Any, bias: Tensor | None) -> PackedLinear:
    """torch.ops.quantized.linear_prepack"""
    if not isinstance(weight, Quantized):
        raise NotImplementedError(f"Could not run 'quantized::linear_prepack' with arguments from the '{weight.device.type.upper()}' backend.")
    if weight.dtype is not dt.qint8:
        raise RuntimeError("The weight tensor for quantized::linear_prepack (fbgemm) should be quantized.")
    if weight.ndim != 2:
        raise RuntimeError("The weight tensor for quantized::linear_prepack (fbgemm) should be 2-dimensional.")
    return PackedLinear(weight, bias)


def pack_half(weight: Tensor, bias: Tensor | None) -> PackedLinear:
    """torch.ops.quantized.linear_prepack_fp16"""
    return PackedLinear(weight, bias, True)
