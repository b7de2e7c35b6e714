"""`torch.ops.quantized_decomposed`: quantizing as arithmetic on integers and scales, which graphs of quantized models are made of.

Tensors are ordinary ones of integers; whoever calls says what they stand for. Derivatives have none but `fake_quant_per_channel`.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...._core import dtype as dt
from ...._custom_operator import CustomOpDef
from ...._functions import torch
from ...._tensor import Tensor
from ....autograd.function import Function
from ....library import Library

_BOUNDS: dict[dt.dtype, tuple[float, float]] = {
    dt.uint8: (0, 255), dt.int8: (-128, 127), dt.uint16: (0, 2**16 - 1), dt.int16: (-(2**15), 2**15 - 1), dt.int32: (-(2**31), 2**31 - 1),
    dt.float8_e5m2: (-57344.0, 57344.0), dt.float8_e4m3fn: (-448.0, 448.0)}
_HALVES = (dt.float16, dt.bfloat16)


def _quant_min_max_bounds_check(quant_min: float, quant_max: float, dtype: dt.dtype) -> None:
    """ValueError for a dtype that nothing is quantized to, AssertionError for bounds that it has not."""
    if dtype not in _BOUNDS:
        raise ValueError(f"Unsupported dtype: {dtype}")
    low, high = _BOUNDS[dtype]
    if quant_min < low:
        raise AssertionError(f"quant_min out of bounds for dtype, quant_min_lower_bound: {low} quant_min: {quant_min}")
    if quant_max > high:
        raise AssertionError(f"quant_max out of bounds for dtype, quant_max_upper_bound: {high} quant_max: {quant_max}")


def _floats(input: Tensor) -> Tensor:
    """A float32 tensor of one of 16 bits too; AssertionError for others."""
    if input.dtype in _HALVES:
        input = input.to(dt.float32)
    if input.dtype is not dt.float32:
        raise AssertionError(f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
    return input


def _rounded(x: Tensor, quant_min: float, quant_max: float, dtype: dt.dtype) -> Tensor:
    return x.clamp(quant_min, quant_max).to(dtype)


# -- one scale of a tensor -------------------------------------------------------------------------------------------------------


def quantize_per_tensor(input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: dt.dtype) -> Tensor:
    """round(input / scale) + zero_point, at least quant_min and at most quant_max."""
    input = _floats(input)
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    return _rounded(torch.round(input * (1.0 / scale)) + zero_point, quant_min, quant_max, dtype)


def _refuse_several(scale: Tensor, zero_point: Tensor) -> None:
    for name, x in (("zero_point", zero_point), ("scale", scale)):
        if x.numel() != 1:
            raise AssertionError(f"Expecting {name} tensor to be one element, but received : {x.numel()}")


def quantize_per_tensor_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, dtype: dt.dtype) -> Tensor:
    """`quantize_per_tensor` by tensors of one element."""
    _refuse_several(scale, zero_point)
    return quantize_per_tensor(input, scale.item(), zero_point.item(), quant_min, quant_max, dtype)


def quantize_per_tensor_tensor2(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: Tensor, quant_max: Tensor, dtype: dt.dtype) -> Tensor:
    """`quantize_per_tensor_tensor`, its bounds tensors, too."""
    return quantize_per_tensor_tensor(input, scale, zero_point, quant_min.item(), quant_max.item(), dtype)


def dequantize_per_tensor(input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: dt.dtype, *,
                          out_dtype: dt.dtype | None = None) -> Tensor:
    """(input - zero_point) * scale, of float32 or out_dtype."""
    if input.dtype is not dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got {input.dtype}")
    if dtype not in _BOUNDS:
        raise ValueError(f"Unsupported dtype in dequantize_per_tensor: {dtype}")
    return (input.to(dt.float32 if out_dtype is None else out_dtype) - zero_point) * scale


def dequantize_per_tensor_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, dtype: dt.dtype, *,
                                 out_dtype: dt.dtype | None = None) -> Tensor:
    """`dequantize_per_tensor` by tensors of one element."""
    _refuse_several(scale, zero_point)
    return dequantize_per_tensor(input, scale.item(), zero_point.item(), quant_min, quant_max, dtype, out_dtype=out_dtype)


def dequantize_per_tensor_tensor2(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: Tensor, quant_max: Tensor, dtype: dt.dtype, *,
                                  out_dtype: dt.dtype | None = None) -> Tensor:
    """`dequantize_per_tensor_tensor`, its bounds tensors, too."""
    return dequantize_per_tensor_tensor(input, scale, zero_point, quant_min.item(), quant_max.item(), dtype, out_dtype=out_dtype)


def _range(input: Tensor, quant_min: int, quant_max: int, dtype: dt.dtype) -> tuple[Tensor, Tensor]:
    """The numbers' range, zero in it. AssertionError for other dtypes and for bounds without zero."""
    if input.dtype not in (dt.float32, *_HALVES):
        raise AssertionError(f"Expecting input to have dtype torch.float32/16/b16, but got dtype: {input.dtype}")
    if dtype not in _BOUNDS:
        raise AssertionError(f"Expecting target dtype to be one of {dict.fromkeys(_BOUNDS).keys()}, but got: {dtype}")
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError("qmin must be less than qmax.")
    low, high = torch.aminmax(input)
    return low.clamp(max=0), high.clamp(min=0)


def choose_qparams_tensor(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: dt.dtype) -> tuple[Tensor, Tensor]:
    """The scale (1 element, float64) that maps the numbers' range to the bounds, at least eps, and the zero point (1 element, int64)."""
    low, high = _range(input, quant_min, quant_max, dtype)
    scale = torch.max((high - low) / float(quant_max - quant_min), torch.tensor(eps, dtype=dt.float32, device=input.device))
    zero_point = (quant_min - torch.round(low / scale).to(dt.int32)).clamp(quant_min, quant_max)
    return scale.to(dt.float64).reshape(1), zero_point.to(dt.int64).reshape(1)


def choose_qparams_symmetric_tensor(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: dt.dtype) -> tuple[Tensor, Tensor]:
    """The same with zero in the bounds' middle: 0, and 128 for uint8."""
    low, high = _range(input, quant_min, quant_max, dtype)
    scale = torch.max(torch.max(-low, high) / (float(quant_max - quant_min) / 2), torch.tensor(eps, dtype=dt.float32, device=input.device))
    zero_point = torch.full((1,), 128 if dtype is dt.uint8 else 0, dtype=dt.int64, device=input.device)
    return scale.to(dt.float64).reshape(1), zero_point


# -- one of each channel ---------------------------------------------------------------------------------------------------------


def _along(x: Tensor, axis: int, like: Tensor) -> Tensor:
    """A vector as a tensor that broadcasts along an axis."""
    shape = [1] * like.ndim
    shape[axis] = -1
    return x.reshape(shape)


def _refuse_axis(axis: int, input: Tensor) -> None:
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")


def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int, dtype: dt.dtype) -> Tensor:
    """`quantize_per_tensor` with a scale and a zero point of each slice along an axis."""
    input = _floats(input)
    _refuse_axis(axis, input)
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    numbers = torch.round(input * (1.0 / _along(scales, axis, input))) + _along(zero_points, axis, input)
    return _rounded(numbers, quant_min, quant_max, dtype)


def dequantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor | None, axis: int, quant_min: int, quant_max: int, dtype: dt.dtype, *,
                           out_dtype: dt.dtype | None = None) -> Tensor:
    """`dequantize_per_tensor` with a scale and a zero point (0 where there are none) of each slice along an axis."""
    if input.dtype is not dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got dtype: {input.dtype}")
    _refuse_axis(axis, input)
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    numbers = input if zero_points is None else input - _along(zero_points, axis, input)
    return (numbers * _along(scales, axis, input)).to(dt.float32 if out_dtype is None else out_dtype)


class FakeQuantPerChannel(Function):
    """Quantized and back again, with the derivative of one where nothing was cut off."""

    @staticmethod
    def forward(ctx, input, scales, zero_points, axis, quant_min, quant_max):
        if scales.dtype is not dt.float32:
            scales = scales.to(dt.float32)
        if zero_points.dtype is not dt.int32:
            zero_points = zero_points.to(dt.int32)
        if input.dtype is not dt.float32:
            raise AssertionError(f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
        _refuse_axis(axis, input)
        scale, zero = _along(scales, axis, input), _along(zero_points, axis, input)
        numbers = torch.round(input * (1.0 / scale)) + zero
        ctx.save_for_backward((numbers >= quant_min) & (numbers <= quant_max))
        return (numbers.clamp(quant_min, quant_max) - zero) * scale

    @staticmethod
    def backward(ctx, gy):
        inside, = ctx.saved_tensors
        return gy * inside, None, None, None, None, None


def fake_quant_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int) -> Tensor:
    """`FakeQuantPerChannel` of these."""
    return FakeQuantPerChannel.apply(input, scales, zero_points, axis, quant_min, quant_max)


# -- one of each token: of the numbers along the last dimension --------------------------------------------------------------------


def choose_qparams_per_token(input: Tensor, dtype: dt.dtype) -> tuple[Tensor, Tensor]:
    """Scales (..., 1) by the largest absolute number of each token, and zero points of 0. int8 only."""
    scales = input.abs().amax(dim=-1, keepdim=True)
    if scales.dtype is dt.float16:  # the division would underflow
        scales = scales.to(dt.float32)
    if dtype is not dt.int8:
        raise Exception(f"unsupported dtype in choose_qparams_per_token: {dtype}")  # noqa: TRY002  (torch's class)
    scales = scales.clamp(min=1e-5).div(127)
    return scales, torch.zeros_like(scales)


def choose_qparams_per_token_asymmetric(input: Tensor, dtype: dt.dtype) -> tuple[Tensor, Tensor]:
    """Scales (..., 1) of float64 and zero points of int64 that map each token's range to -128 to 127."""
    low, high = input.amin(-1, keepdim=True).clamp(max=0), input.amax(-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255.0).clamp(min=torch.finfo(dt.float32).eps)
    below, above = low / scale, high / scale
    zero_point = torch.where((-128 + below) + (127 + above) > 0, -128 - below, 127 - above)  # from the end whose own rounding is the smaller
    return scale.to(dt.float64), torch.round(zero_point.clamp(-128, 127)).to(dt.int64)


def _per_token_quant_qparam_dim_check(input: Tensor, scales: Tensor, zero_points: Tensor) -> None:
    """AssertionError where there are not as many scales and zero points as tokens."""
    tokens = input.numel() // input.shape[-1] if input.ndim else 1
    for name, x in (("scales", scales), ("zero_points", zero_points)):
        if x.numel() != tokens:
            raise AssertionError(f"num_tokens: {tokens} {name}: {x.size()}")


def quantize_per_token(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: dt.dtype) -> Tensor:
    """round(input / scales + zero_points) within the bounds."""
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    _per_token_quant_qparam_dim_check(input, scales, zero_points)
    return _rounded(input.mul(1.0 / scales).add(zero_points).round(), quant_min, quant_max, dtype)


def dequantize_per_token(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: dt.dtype,
                         output_dtype: dt.dtype = dt.float32) -> Tensor:
    """(input - zero_points) * scales, of output_dtype."""
    return ((input - zero_points) * scales).to(output_dtype)


# -- one of each group of numbers in a row of a matrix -----------------------------------------------------------------------------


def _refuse_groups(input: Tensor, group_size: int, name: str) -> None:
    if group_size <= 1:
        raise AssertionError("group_size must be > 1")
    if input.shape[-1] % group_size:
        raise AssertionError(f"{name}.shape[-1] must be divisible by group_size")
    if input.dim() != 2:
        raise AssertionError(f"{name} must be 2-dimensional")


def quantize_per_channel_group(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: dt.dtype, group_size: int = 128) -> Tensor:
    """A matrix, each `group_size` neighbours in a row by a scale and a zero point of their own: scales (rows, groups)."""
    if group_size > input.shape[-1] and scales.shape[-1] == 1:
        group_size = input.shape[-1]
    _refuse_groups(input, group_size, "input")
    groups = input.reshape(-1, group_size)
    if groups.device.type != "meta" and bool(groups.isnan().any()):
        raise AssertionError("to_quant must not contain NaNs")
    scales, zero_points = scales.reshape(-1, 1), zero_points.reshape(-1, 1)
    return _rounded(groups.mul(1.0 / scales).add(zero_points).round(), quant_min, quant_max, dtype).reshape_as(input)


def dequantize_per_channel_group(w_int8: Tensor, scales: Tensor, zero_points: Tensor | None, quant_min: int, quant_max: int, dtype: dt.dtype,
                                 group_size: int = 128, output_dtype: dt.dtype = dt.float32) -> Tensor:
    """The matrix again, of output_dtype."""
    if group_size > w_int8.shape[-1] and scales.shape[-1] == 1:
        group_size = w_int8.shape[-1]
    _refuse_groups(w_int8, group_size, "w_int8")
    groups = w_int8.reshape(-1, group_size)
    if zero_points is not None:
        groups = groups.sub(zero_points.reshape(-1, 1))
    return groups.mul(scales.reshape(-1, 1)).reshape_as(w_int8).to(output_dtype)


def convert_element_type(input: Tensor, dtype: dt.dtype) -> Tensor:
    """The numbers as another dtype, which no compiler is to take away."""
    return input.to(dtype)


# -- the operators ---------------------------------------------------------------------------------------------------------------

_TENSOR, _BETWEEN = "Tensor input, Tensor scale, Tensor zero_point, ", "int quant_min, int quant_max, ScalarType dtype"
_SCALAR, _TENSOR2 = "Tensor input, float scale, int zero_point, ", "Tensor quant_min, Tensor quant_max, ScalarType dtype"
_OUT, _CHOSEN, _EPS = ", *, ScalarType? out_dtype=None", "(Tensor, Tensor)", "Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype"
_MANY = "Tensor input, Tensor scales, Tensor zero_points, "
_SCHEMAS: dict[str, tuple[Callable, str, str]] = {
    "quantize_per_tensor": (quantize_per_tensor, _SCALAR + _BETWEEN, "Tensor"),
    "quantize_per_tensor.tensor": (quantize_per_tensor_tensor, _TENSOR + _BETWEEN, "Tensor"),
    "quantize_per_tensor.tensor2": (quantize_per_tensor_tensor2, _TENSOR + _TENSOR2, "Tensor"),
    "dequantize_per_tensor": (dequantize_per_tensor, _SCALAR + _BETWEEN + _OUT, "Tensor"),
    "dequantize_per_tensor.tensor": (dequantize_per_tensor_tensor, _TENSOR + _BETWEEN + _OUT, "Tensor"),
    "dequantize_per_tensor.tensor2": (dequantize_per_tensor_tensor2, _TENSOR + _TENSOR2 + _OUT, "Tensor"),
    "choose_qparams.tensor": (choose_qparams_tensor, _EPS, _CHOSEN),
    "choose_qparams_symmetric.tensor": (choose_qparams_symmetric_tensor, _EPS, _CHOSEN),
    "quantize_per_channel": (quantize_per_channel, f"{_MANY}int axis, {_BETWEEN}", "Tensor"),
    "dequantize_per_channel": (dequantize_per_channel, f"{_MANY.replace('Tensor zero_p', 'Tensor? zero_p')}int axis, {_BETWEEN}{_OUT}", "Tensor"),
    "choose_qparams_per_token": (choose_qparams_per_token, "Tensor input, ScalarType dtype", _CHOSEN),
    "choose_qparams_per_token_asymmetric": (choose_qparams_per_token_asymmetric, "Tensor input, ScalarType dtype", _CHOSEN),
    "_choose_qparams_per_token_asymmetric_impl": (choose_qparams_per_token_asymmetric, "Tensor input, ScalarType dtype", _CHOSEN),
    "quantize_per_token": (quantize_per_token, _MANY + _BETWEEN, "Tensor"),
    "dequantize_per_token": (dequantize_per_token, f"{_MANY}{_BETWEEN}, ScalarType output_dtype", "Tensor"),
    "quantize_per_channel_group": (quantize_per_channel_group, f"{_MANY}{_BETWEEN}, int group_size", "Tensor"),
    "dequantize_per_channel_group": (dequantize_per_channel_group, f"{_MANY.replace('Tensor zero_p', 'Tensor? zero_p')}{_BETWEEN}, int group_size, ScalarType output_dtype",
                                     "Tensor"),
    "fake_quant_per_channel": (fake_quant_per_channel, f"{_MANY}int axis, int quant_min, int quant_max", "Tensor"),
    "convert_element_type.no_fuse": (convert_element_type, "Tensor input, ScalarType dtype", "Tensor"),
}


def _without_gradient(kernel: Callable) -> Callable:
    @functools.wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return kernel(*args, **kwargs)
    return run


def _on_meta(kernel: Callable) -> Callable:
    """A kernel that looks at numbers, for tensors that have none."""
    def run(input: Tensor, scale: Tensor, zero_point: Tensor, low: Any, high: Any, dtype: dt.dtype, **kwargs: Any) -> Tensor:
        return kernel(input, 1.0, 0, *(_BOUNDS[dtype] if isinstance(low, Tensor) else (low, high)), dtype, **kwargs)
    return run


for _name, (_kernel, _parameters, _returns) in _SCHEMAS.items():
    _op = CustomOpDef("quantized_decomposed", _name, f"({_parameters}) -> {_returns}", None)
    if _name == "fake_quant_per_channel":
        _op._kernels["composite"] = _kernel
    else:
        _op._kernels["default"] = _kernel if _name.startswith("convert") else _without_gradient(_kernel)
    if "per_tensor.tensor" in _name:
        _op.register_fake(_on_meta(dequantize_per_tensor if _name[0] == "d" else quantize_per_tensor))
quantized_decomposed_lib = Library("quantized_decomposed", "DEF")  # where libraries define more of them
