"""Making quantized tensors."""
from __future__ import annotations

import math
from typing import Any

from .._arguments import as_size
from .._core import dtype as dt
from .._core.history import warn
from .._public import FUNCTIONS
from .._tensor import Tensor
from .kernels import LIMITS, STORED
from .qparams import choose
from .quantizers import PerChannel, PerTensor, Quantizer
from .tensor import Quantized, quantized

_OF_STORED = {dt.from_numpy_dtype(integers): dt.by_name(name) for name, integers in STORED.items()}


def _numbers(input: Any) -> Tensor:
    if isinstance(input, Quantized):
        input.refuse("quantize_per_tensor")
    if input.dtype is not dt.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {input.dtype.short}")
    return input.detach().contiguous()


def _said() -> None:
    warn("quantized dtypes (torch.quint8, torch.qint8, torch.qint32) and the functions that make tensors of them are deprecated in PyTorch, which will remove "
         "them", once=True)


def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: dt.dtype) -> Any:
    """float32 numbers x as the integers `x / scale + zero_point` of a quantized type; of a list of tensors each by its own scale."""
    if isinstance(input, (list, tuple)):
        return tuple(quantize_per_tensor(x, s, z, dtype) for x, s, z in zip(input, scale, zero_point))
    scale, zero_point = (x.item() if isinstance(x, Tensor) else x for x in (scale, zero_point))
    if isinstance(zero_point, float):
        raise TypeError("quantize_per_tensor() received an invalid combination of arguments - got (Tensor, float, float, torch.dtype), but expected one of:")
    quantizer = PerTensor(float(scale), int(zero_point), dtype)
    x = _numbers(input)
    quantizer.check(quantizer.zero_point, "quantize_tensor_per_tensor_affine")
    _said()
    return quantized(quantizer.quantize(x), quantizer)


def quantize_per_tensor_dynamic(input: Tensor, dtype: dt.dtype, reduce_range: bool) -> Tensor:
    """Quantized by a scale and a zero point that fit what the tensor holds."""
    if dtype is dt.float16:
        return input.to(dt.float16)
    if dtype not in (dt.qint8, dt.quint8):
        raise RuntimeError(f"dtype {dtype.short}not supported")
    x = _numbers(input)
    if not x.numel():
        raise RuntimeError("min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
    low, high = (x.min().item(), x.max().item())
    if math.isnan(low) or math.isnan(high):
        raise RuntimeError("In ChooseQuantizationParams, min should be less than or equal to max")
    scale, zero_point = choose(low, high, *halved(dtype, reduce_range))
    return quantize_per_tensor(x, scale, zero_point, dtype)


def _choose_qparams_per_tensor(input: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """The scale and the zero point that fit what a tensor holds, as bytes."""
    return choose(input.min().item(), input.max().item(), *halved(dt.quint8, reduce_range))


def _saturate_weight_to_fp16(weight: Tensor) -> Tensor:
    """A matrix that float16 can hold: larger numbers become its largest, where they lie."""
    if weight.dtype is not dt.float32:
        raise RuntimeError(f"expected scalar type Float but found {weight.dtype.short}")
    weight.size(1)  # whose error it is
    weight = weight.contiguous()
    weight.data.clamp_(-65504.0, 65504.0)
    return weight


def halved(dtype: dt.dtype, reduce_range: bool) -> tuple[int, int]:
    """The least and the largest integer of a type, or of one bit less."""
    low, high = LIMITS[dtype.name]
    return (int(low / 2), high // 2) if reduce_range else (low, high)


def _channels(scales: Tensor, zero_points: Tensor, axis: int, dtype: dt.dtype) -> PerChannel:
    if scales.ndim != 1 or zero_points.ndim != 1:
        raise RuntimeError(f"{'scale' if scales.ndim != 1 else 'zero_points'} tensor must have dimension 1")
    if not scales.dtype.is_floating_point:
        raise RuntimeError("scale tensor must be floating point")
    if scales.numel() != zero_points.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")
    kinds = (dt.float32, dt.float32) if zero_points.dtype.is_floating_point else (dt.float64, dt.int64)
    return PerChannel(scales.detach().to(kinds[0]).contiguous(), zero_points.detach().to(kinds[1]).contiguous(), int(axis), dtype)


def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: dt.dtype) -> Tensor:
    """float32 numbers as integers, with a scale and a zero point for each index along `axis`."""
    quantizer = _channels(scales, zero_points, axis, dtype)
    x = _numbers(input)
    if not 0 <= axis < x.ndim:
        raise RuntimeError(f"Channel axis out of range in per channel affine quantization. Got: {axis}Expected: [0, {x.ndim})")
    quantizer.fit(x.shape)
    if not quantizer.zero_points.dtype.is_floating_point:
        for zero_point in quantizer.zero_points.tolist():
            quantizer.check(zero_point, "quantize_tensor_per_channel_affine")
    _said()
    return quantized(quantizer.quantize(x), quantizer)


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """Integers as they are, with what they stand for."""
    return quantized(input.detach().clone(), PerTensor(float(scale), int(zero_point), _quantized_type(input)))


def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """Integers as they are, with what they stand for."""
    return quantized(input.detach().clone(), _channels(scale, zero_point, axis, _quantized_type(input)))


def _quantized_type(integers: Tensor) -> dt.dtype:
    if integers.dtype not in _OF_STORED:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    return _OF_STORED[integers.dtype]


def _empty(size: Any, quantizer: Quantizer, device: Any = None) -> Tensor:
    return quantized(FUNCTIONS["empty"](as_size(size), dtype=quantizer.stored, device=device), quantizer)


def _empty_affine_quantized(*size: Any, dtype: dt.dtype | None = None, scale: float = 1.0, zero_point: int = 0, device: Any = None, **options: Any) -> Tensor:
    """Memory for integers with one scale."""
    if dtype is None or dtype.name not in STORED:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    return _empty(as_size(*size), PerTensor(float(scale), int(zero_point), dtype), device)


def _empty_per_channel_affine_quantized(*size: Any, scales: Tensor, zero_points: Tensor, axis: int, dtype: dt.dtype | None = None, device: Any = None,
                                        **options: Any) -> Tensor:
    """Memory for integers with scales along an axis."""
    if dtype is None or dtype.name not in STORED:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    return _empty(as_size(*size), _channels(scales, zero_points, axis, dtype), device)


def empty_quantized(size: Any, qtensor: Tensor, *, dtype: dt.dtype | None = None, device: Any = None, **options: Any) -> Tensor:
    """Memory for integers that stand for what another tensor's do."""
    return _empty(size, qtensor._quantizer, device or qtensor.device)


def from_parts(integers: Tensor, dtype: dt.dtype, parts: tuple) -> Tensor:
    """A tensor of a file: its integers and what they stand for."""
    scheme, *rest = parts
    if scheme.name == "per_tensor_affine":
        return quantized(integers, PerTensor(float(rest[0]), int(rest[1]), dtype))
    scales, zero_points, axis = rest
    if not isinstance(scales, Tensor):
        scales = FUNCTIONS["tensor"](scales, dtype=dt.float64)
        zero_points = FUNCTIONS["tensor"](zero_points, dtype=dt.int64)
    return quantized(integers, _channels(scales, zero_points, axis, dtype))
