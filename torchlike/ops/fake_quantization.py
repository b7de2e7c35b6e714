"""Of quantization what plain tensors take part in: values rounded as a quantized tensor holds them, for training that knows of it."""
from __future__ import annotations

import numpy as np

from .._arguments import as_dim
from .._core import dtype as dt
from .._core.errors import not_implemented
from .._core.registry import Elementwise
from .._public import FUNCTIONS, named, public
from .._tensor import Tensor, apply, as_tensor_value
from .choosing import choose


@public()
def dequantize(input) -> Tensor:
    """The numbers that a quantized tensor stands for, as float32; of a list of tensors each. Other tensors as float32."""
    if isinstance(input, (list, tuple)):
        return tuple(map(dequantize, input))
    return input.dequantize() if input._sparse and input.is_quantized else input.to(dt.float32)


def _places(xp, x, inverse, zero_point, rounded_last):
    """Where among the integers each value is, before it is clamped."""
    return xp.rint(x * inverse + zero_point) if rounded_last else xp.rint(x * inverse) + zero_point


def _fake_quantize(xp, x, scale, inverse, zero_point, low, high, rounded_last, single):
    place = _places(xp, x, inverse, zero_point, rounded_last)
    place = xp.where(xp.isnan(place), xp.asarray(low, place.dtype), xp.clip(place, low, high))
    made = place - zero_point
    return made.astype(np.float32) * scale.astype(np.float32) if single else made * scale


def _within(xp, g, x, inverse, zero_point, low, high, rounded_last):
    """What was not clamped lets gradients through as they are."""
    place = _places(xp, x, inverse, zero_point, rounded_last)
    return choose(xp, (place >= low) & (place <= high), g, xp.zeros((), g.dtype))


FAKE_QUANTIZE = Elementwise("fake_quantize", _fake_quantize, promote="same", grads=(_within, None, None, None))


def _faked(kind: str, input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, single: bool = False) -> Tensor:
    """`single`: results are made in single precision for doubles, too, as torch makes them."""
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")
    if input.dtype.category != dt.FLOAT:
        raise not_implemented(f"fake_quantize_{kind}", input.dtype)
    scale = scale.detach().to(dt.float32)
    return apply(FAKE_QUANTIZE, (input, scale, scale.reciprocal(), zero_point.detach()), (quant_min, quant_max, zero_point.dtype.is_floating_point, single))


@public(method=False)
def fake_quantize_per_tensor_affine(input: Tensor, scale, zero_point, quant_min: int, quant_max: int) -> Tensor:
    """Each value as `scale * (n - zero_point)` with the nearest integer n of quant_min..quant_max."""
    name = "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0"
    if not isinstance(scale, Tensor):
        if quant_min <= quant_max and not quant_min <= zero_point <= quant_max:
            raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
        name = "FakeQuantizePerTensorAffineCachemaskBackward0"
        scale, zero_point = (as_tensor_value(x, input.device) for x in (np.float32(scale), np.int32(zero_point)))
    return named(_faked("tensor_cachemask_kernel_type_handling", input, scale, zero_point.to(dt.int32), quant_min, quant_max, True), name)


@public(method=False)
def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int) -> Tensor:
    """The same with a scale and a zero point for each index along `axis`."""
    if scale.dtype not in (dt.float32, dt.bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scale.dtype.short}")
    if zero_point.dtype not in (dt.int32, dt.float32, dt.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype.short}")
    if scale.ndim != 1 or zero_point.ndim != 1:
        raise RuntimeError("scale and zero point should be 1-D tensors")
    if as_dim(axis, input.ndim) != axis:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if scale.shape != zero_point.shape or len(scale) != input.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    if zero_point.dtype is dt.int32 and quant_min <= quant_max and len(scale) and not (
            zero_point.min().item() >= quant_min and zero_point.max().item() <= quant_max):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    shape = [-1 if d == axis else 1 for d in range(input.ndim)]
    made = _faked("channel_cachemask_cpu_type_handling", input, scale.view(shape), zero_point.view(shape), quant_min, quant_max)
    return named(made, "FakeQuantizePerChannelAffineCachemaskBackward0")


def _averaged(running: Tensor, now: Tensor, averaging_const: float) -> Tensor:
    """An average moved towards what is now seen; one that saw nothing yet (infinite) is that."""
    return FUNCTIONS["where"](running.isinf(), now, running + averaging_const * (now - running))


@public(method=False)
def fused_moving_avg_obs_fake_quant(input: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
                                    zero_point: Tensor, averaging_const: float, quant_min: int, quant_max: int, ch_axis: int, per_row_fake_quant: bool = False,
                                    symmetric_quant: bool = False) -> Tensor:
    """Where `observer_on` is 1, moves `running_min` and `running_max` towards the input's ends; where `fake_quant_on` is 1, writes the scale and zero point that
    follow, and returns the input rounded by them (as it is otherwise). With `per_row_fake_quant` for each index of dimension 0: RuntimeError for another
    `ch_axis`."""
    from .._quantized.qparams import choose_moving  # above this file
    if per_row_fake_quant and ch_axis != 0:
        raise RuntimeError("Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0")
    if per_row_fake_quant and scale.numel() not in (0, input.shape[0]):
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    if int(observer_on) == 1:
        seen = input.detach().reshape(input.shape[0] if per_row_fake_quant else 1, -1)
        for running, now in ((running_min, seen.amin(1)), (running_max, seen.amax(1))):
            if not running.numel():
                running.resize_(now.shape).copy_(now)
            else:
                running.copy_(_averaged(running, now.reshape(running.shape), averaging_const))
    if int(fake_quant_on) != 1:
        return input.clone()
    found = choose_moving(*[t.detach().reshape(-1).cpu().numpy().astype(np.float64) for t in (running_min, running_max)], quant_min, quant_max, symmetric_quant)
    for kept, new in zip((scale, zero_point), found):
        new = as_tensor_value(new, kept.device)
        (kept if kept.numel() else kept.resize_(new.shape)).copy_(new.reshape(kept.shape))
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(input, scale, zero_point, 0, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)
