"""What a quantized tensor's integers stand for: one scale and zero point, or one of each per index along an axis."""
from __future__ import annotations

from typing import NoReturn

import numpy as np

from .._core import dtype as dt
from .._qscheme import SCHEMES, qscheme
from .._tensor import Tensor, apply
from .kernels import DEQUANTIZE, DEQUANTIZE_CHANNELS, LIMITS, QUANTIZE, QUANTIZE_CHANNELS, STORED

NO_STRIDES = "Setting strides is possible only on uniformly quantized tensor"


def expected(schemes: str) -> NoReturn:
    raise RuntimeError(f"Expected {' || '.join(f'quantizer->qscheme() == k{s}' for s in schemes.split())} to be true, but got false.  "
                       "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)")


class Quantizer:
    """Base of both, which `quantize` float32 numbers, `dequantize` integers, and say whether integers mean the `same` to another; `dtype` is the quantized type."""

    dtype: dt.dtype
    qscheme: qscheme

    def __init__(self, dtype: dt.dtype):
        if dtype.name not in STORED:
            raise RuntimeError(f"ScalarType {dtype.short} is not supported in new_qtensor." if dtype.name not in ("quint4x2", "quint2x4") else
                               f"torchlike: tensors of {dtype} are not supported")
        self.dtype = dtype

    @property
    def stored(self) -> dt.dtype:
        """The type of the integers."""
        return dt.from_numpy_dtype(self.dtype.integers)

    def check(self, zero_point: int, function: str) -> None:
        """RuntimeError where a zero point is no integer of the type."""
        low, high = LIMITS[self.dtype.name]
        if not low <= zero_point <= high:
            raise RuntimeError(f"{function} zero_point {zero_point} is {'below lower' if zero_point < low else 'above upper'} bound.")


class PerTensor(Quantizer):
    """`scale * (n - zero_point)`"""

    qscheme = SCHEMES["per_tensor_affine"]

    def __init__(self, scale: float, zero_point: int, dtype: dt.dtype):
        super().__init__(dtype)
        self.scale, self.zero_point = scale, zero_point

    def quantize(self, x: Tensor) -> Tensor:
        return apply(QUANTIZE, (x, self.scale, self.zero_point), (self.dtype.name,))

    def dequantize(self, integers: Tensor) -> Tensor:
        return apply(DEQUANTIZE, (integers, self.scale, self.zero_point))

    def same(self, other: Quantizer) -> bool:
        return isinstance(other, PerTensor) and (self.dtype, self.scale, self.zero_point) == (other.dtype, other.scale, other.zero_point)

    def place(self, number: float) -> int:
        """The integer of one number."""
        low, high = LIMITS[self.dtype.name]
        inverse = np.float32(1) / np.float32(self.scale)
        return int(np.clip(np.float64(np.rint(np.float32(np.float64(np.float32(number)) * np.float64(inverse) + self.zero_point))), low, high))

    def centered(self, n: Tensor) -> Tensor:
        """int32 without the zero point."""
        return n.to(dt.int32) - self.zero_point

    def parts(self) -> tuple:
        """As files have it."""
        return self.qscheme, self.scale, self.zero_point

    def words(self) -> list[str]:
        """As it prints."""
        return [f"scale={self.scale}", f"zero_point={self.zero_point}"]


class PerChannel(Quantizer):
    """`scales[i] * (n - zero_points[i])` with the index i along `axis`. Scales are doubles and zero points integers, or both are float32."""

    def __init__(self, scales: Tensor, zero_points: Tensor, axis: int, dtype: dt.dtype):
        super().__init__(dtype)
        self.scales, self.zero_points, self.axis = scales, zero_points, axis
        self.qscheme = SCHEMES["per_channel_affine_float_qparams" if zero_points.dtype.is_floating_point else "per_channel_affine"]

    def quantize(self, x: Tensor) -> Tensor:
        return apply(QUANTIZE_CHANNELS, (x, self.scales, self.zero_points), (self.axis, self.dtype.name))

    def dequantize(self, integers: Tensor) -> Tensor:
        return apply(DEQUANTIZE_CHANNELS, (integers, self.scales, self.zero_points), (self.axis,))

    def same(self, other: Quantizer) -> bool:
        return (isinstance(other, PerChannel) and (self.dtype, self.axis, self.qscheme) == (other.dtype, other.axis, other.qscheme)
                and self.scales.equal(other.scales) and self.zero_points.equal(other.zero_points))

    def along(self, axis: int) -> PerChannel:
        """The same for a tensor whose axis is another one."""
        return self if axis == self.axis else PerChannel(self.scales, self.zero_points, axis, self.dtype)

    def fit(self, shape: tuple) -> None:
        """RuntimeError where a tensor of this shape has not as many indices along the axis."""
        if self.axis >= len(shape):
            raise RuntimeError(f"Channel axis out of range in per channel affine quantization. Got: {self.axis}Expected: [0, {len(shape)})")
        if shape[self.axis] != len(self.scales):
            raise RuntimeError(f"length of scales must equal to channel, expected {shape[self.axis]} got, {len(self.scales)}")

    def centered(self, n: Tensor) -> Tensor:
        """int32 without the zero points."""
        return n.to(dt.int32) - self.zero_points.reshape([-1 if d == self.axis else 1 for d in range(n.ndim)])

    def parts(self) -> tuple:
        return self.qscheme, self.scales, self.zero_points, self.axis

    def words(self) -> list[str]:
        return [f"scale={self.scales!r}", f"zero_point={self.zero_points!r}", f"axis={self.axis}"]
