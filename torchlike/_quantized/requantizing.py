"""Sums of products of integers made integers of another scale, rounded as in PyTorch's x86 kernels."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.registry import Op
from .._tensor import Tensor, apply
from .kernels import LIMITS, STORED, single
from .quantizers import PerTensor
from .tensor import Quantized, quantized


def _requantize(xp, total, scale, scales, bias, out_scale, out_zero_point, relu):
    """quint8 of `total * scale * scales + bias`: total (batch, channels, ...), scales for all or for each channel, as bias."""
    shape = (-1,) + (1,) * (total.ndim - 2)
    both = single(xp, xp.asarray(scale, np.float32).astype(np.float64) * scales.astype(np.float32).astype(np.float64)).astype(np.float32)
    factor = (both / xp.asarray(out_scale, np.float32)).reshape(shape)
    total = single(xp, total)
    if bias is not None:  # in units of the products, before the factor
        total = single(xp, total + (bias / both).astype(np.float64).reshape(shape))
    out_zero_point = xp.asarray(out_zero_point, np.float64)
    made = xp.rint(single(xp, total * factor.astype(np.float64))) + out_zero_point
    return xp.clip(made, out_zero_point if relu else 0.0, 255.0).astype(np.uint8)


def _multiply(xp, a, b, a_zero_point, b_zero_point, factor, zero_point, name, relu):
    product = (a.astype(np.int32) - xp.asarray(a_zero_point, np.int32)) * (b.astype(np.int32) - xp.asarray(b_zero_point, np.int32))
    zero_point = xp.asarray(zero_point, np.float64)
    low, high = LIMITS[name]
    made = xp.rint(single(xp, product.astype(np.float32).astype(np.float64) * xp.asarray(factor, np.float64))) + zero_point
    return xp.clip(made, xp.maximum(zero_point, float(low)) if relu else float(low), float(high)).astype(STORED[name])


def _product_shape(a, b, *others):
    return np.broadcast_shapes(a.shape, b.shape), a.dtype


REQUANTIZE = Op("requantize", _requantize, shape=lambda total, *others: (total.shape, dt.uint8), vjp=False)
MULTIPLY = Op("quantized_multiply", _multiply, shape=_product_shape, vjp=False)


def requantized(total: Tensor, scale: float, scales: Tensor, bias: Tensor | None, out: PerTensor, relu: bool) -> Quantized:
    """A quint8 tensor of sums of products of integers, whose scales are `scale` and `scales`."""
    return quantized(apply(REQUANTIZE, (total, scale, scales, None if bias is None else bias.detach(), out.scale, out.zero_point), (relu,)), out)


def inputs(x: Any, operator: str) -> PerTensor:
    """What the integers of an operator's input stand for. NotImplementedError for a float one, RuntimeError for one that is not quint8."""
    if not isinstance(x, Quantized):
        raise NotImplementedError(f"Could not run 'quantized::{operator}' with arguments from the '{x.device.type.upper()}' backend.")
    if x.dtype is not dt.quint8:
        raise RuntimeError(f"{operator}: Expected input data type QUInt8 but got {x.dtype.short}")
    return x._uniform()


def sum_of(a: Quantized, b: Quantized, scale: float, zero_point: int, relu: bool = False) -> Quantized:
    """a + b with another scale."""
    out = PerTensor(float(scale), int(zero_point), a.dtype)
    total = a.dequantize() + b.dequantize()
    return quantized(out.quantize(total.relu() if relu else total), out)


def product_of(a: Quantized, b: Quantized, scale: float, zero_point: int, relu: bool = False) -> Quantized:
    """a * b with another scale."""
    out, qa, qb = PerTensor(float(scale), int(zero_point), a.dtype), a._uniform(), b._uniform()
    factor = float(np.float32(qa.scale) * np.float32(qb.scale) * (np.float32(1) / np.float32(out.scale)))
    return quantized(apply(MULTIPLY, (a._held, b._held, qa.zero_point, qb.zero_point, factor, out.zero_point), (a.dtype.name, relu)), out)


def plus_number(a: Quantized, number: float, relu: bool = False) -> Quantized:
    """a + number: the same integers from another zero point, or with the scale that lets it stay in range."""
    own, (low, high) = a._uniform(), LIMITS[a.dtype.name]
    moved = own.zero_point - round(number / own.scale)
    if low <= moved <= high:
        held, out = a._held, PerTensor(own.scale, moved, a.dtype)
    else:
        wide, end = (high - moved, low) if moved < low else (moved - low, high)
        out = PerTensor(wide / (high - low) * own.scale, end, a.dtype)
        held = out.quantize((a._held.to(dt.float32) - moved) * own.scale)
    return quantized(held.clamp(min=out.zero_point) if relu else held, out)


def times_number(a: Quantized, number: float, relu: bool = False) -> Quantized:
    """a * number: the same integers of another scale, turned around for a negative number."""
    own, (low, high) = a._uniform(), LIMITS[a.dtype.name]
    if number == 0:
        return quantized(a._held * 0, PerTensor(1.0, 0, a.dtype))
    out = PerTensor(own.scale * abs(number), own.zero_point if number > 0 else high - (own.zero_point - low), a.dtype)
    held = a._held if number > 0 else (high + low - a._held.to(dt.int32)).to(a._held.dtype)
    return quantized(held.clamp(min=out.zero_point) if relu else held, out)
