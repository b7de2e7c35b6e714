"""Activation functions made of pieces: leaky_relu, elu, hardtanh, threshold, shrinkage and their kin."""
from __future__ import annotations

import inspect
import math

import numpy as np

from ..._arguments import real
from ..._core import dtype as dt
from ..._core import rng
from ..._core.registry import Elementwise
from ..._public import in_place, public, with_out
from ..._tensor import Tensor, apply
from ...ops.blocks import in_blocks
from ...ops.choosing import choose
from ...ops.elements import rounded
from ...ops.exponentials import expm1_below
from ...ops.limits import at_most, within
from ...ops.random import default_generator
from ...ops.staged_draws import drawn_from
from .common import const, finish, floating, need, not_implemented, scalar

# -- slopes for negative numbers ---------------------------------------------------------------------------------------------


def _leaky(xp, x, slope):
    if xp is np and x.ndim and 0 < slope <= 1:
        less = x * slope
        return np.maximum(x, less, out=less)
    return choose(xp, x > 0, x, x * slope)


_LEAKY = Elementwise("leaky_relu", _leaky, promote="same", grads=(in_blocks(lambda xp, g, x, slope: choose(xp, x > 0, g, g * slope)), None))


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x for x > 0, negative_slope * x otherwise."""
    floating(input, "leaky_relu_cpu", "leaky_relu")
    return finish(input, apply(_LEAKY, (input, scalar(negative_slope, "leaky_relu", "negative_slope", 2))), inplace)


_PRELU = Elementwise("prelu", lambda xp, x, w: _leaky(xp, x, w) if xp is np and w.size == 1 else choose(xp, x > 0, x, x * w), torch_name="PreluKernelBackward0", grads=(
    in_blocks(lambda xp, g, x, w: choose(xp, x > 0, g, g * w)), in_blocks(lambda xp, g, x: choose(xp, x > 0, const(g, 0), g * x))))


@public()
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x for x > 0, weight * x otherwise; one weight, or one per channel (dimension 1). He et al. 2015."""
    need(weight, "prelu", "weight", 2)
    if need(input, "prelu").dtype is not weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype.short} and {weight.dtype.short}")
    if weight.numel() != 1:
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and channel size "
                               f"= {channels}.")
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    floating(input, "prelu_cpu", "prelu")
    if weight.ndim:
        weight = weight.reshape([-1 if i == 1 else 1 for i in range(input.ndim)] if input.ndim > 1 else (1,) * input.ndim)
    return apply(_PRELU, (input, weight))


_RRELU = Elementwise("rrelu_with_noise", lambda xp, x, noise: x * noise, promote="same", grads=(lambda xp, g, noise: g * noise, None),
                     torch_name="RreluWithNoiseBackward0")


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """leaky_relu with slopes drawn from [lower, upper) in training, and with their mean otherwise (Xu et al. 2015)."""
    lower, upper = real(lower, "rrelu", "lower", 2, "Number"), real(upper, "rrelu", "upper", 3, "Number")
    for bound, name in ((lower, "lower"), (upper, "upper")):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound:g}")
    floating(input, "leaky_relu_cpu", "rrelu")
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return finish(input, apply(_LEAKY, (input, (lower + upper) / 2)), inplace)
    kind = input.dtype.np

    def noise(host):
        negative = host <= 0  # one number is drawn per negative element
        made = np.ones(negative.shape, kind)
        made[negative] = rng.uniform(default_generator, (int(negative.sum()),), float(lower), float(upper), np.dtype(np.float64))
        return made
    return finish(input, apply(_RRELU, (input, drawn_from(noise, [input], tuple(input.shape), kind))), inplace)


# -- exponential tails -------------------------------------------------------------------------------------------------------


@in_blocks
def _elu(xp, x, alpha, scale, steep):
    return choose(xp, x >= 0, x * scale, alpha * scale * expm1_below(xp, at_most(xp, x, const(x, 0)) * steep))


@in_blocks
def _elu_grad(xp, g, x, alpha, scale, steep):
    below = choose(xp, x < 0, x, const(x, 0))  # whose own slope at zero is 0; minimum's would be a half
    return choose(xp, x <= 0, g * (alpha * scale * steep) * xp.exp(below * steep), g * scale)


_ELU = Elementwise("elu", _elu, promote="same", grads=(_elu_grad, None, None, None))
_CELU = Elementwise("celu", _elu, promote="same", grads=(_elu_grad, None, None, None))
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x for x > 0, alpha (exp(x) - 1) otherwise (Clevert et al. 2016)."""
    floating(input, "elu_cpu", "elu")
    return finish(input, apply(_ELU, (input, scalar(alpha, "elu", "alpha", 2), 1.0, 1.0)), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu scaled so that activations keep mean 0 and variance 1 (Klambauer et al. 2017)."""
    floating(input, "elu_cpu", "selu")
    return finish(input, apply(_ELU, (input, _SELU_ALPHA, _SELU_SCALE, 1.0)), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x for x > 0, alpha (exp(x / alpha) - 1) otherwise (Barron 2017)."""
    need(input, "celu")
    alpha = scalar(alpha, "celu", "alpha", 2)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    floating(input, "elu_cpu", "celu")
    return finish(input, apply(_CELU, (input, alpha, 1.0, 1 / alpha)), inplace)


# -- bounds ------------------------------------------------------------------------------------------------------------------


def _outside(xp, g, outside):
    return choose(xp, outside, const(g, 0), g)


_HARDTANH = Elementwise("hardtanh", within, promote="same", grads=(
    lambda xp, g, x, low, high: _outside(xp, g, (x <= low) | (x >= high)), None, None))


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]."""
    need(input, "hardtanh")
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _hardtanh(input, scalar(min_val, "hardtanh", "min_val", 2), scalar(max_val, "hardtanh", "max_val", 3), inplace)


def _hardtanh(input: Tensor, low, high, inplace: bool) -> Tensor:
    if input.dtype is dt.bool_:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if input.dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if input.dtype is dt.uint8 and (int(low) < 0 or int(high) < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return finish(input, apply(_HARDTANH, (input, low, high)), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return _hardtanh(need(input, "relu6"), 0.0, 6.0, inplace)


def _shifted(xp, x):
    return within(xp, x + const(x, 3), const(x, 0), const(x, 6))


@in_blocks
def _hardswish_grad(xp, g, x):
    inner = choose(xp, x < 3, g * (x / const(x, 3) + const(x, 0.5)), g)
    return choose(xp, x <= -3, const(g, 0), inner)


_SIXTH = np.float32(1 / 6)  # torch's constant, which is a float32 for float64 gradients too
_HARDSIGMOID = Elementwise("hardsigmoid", lambda xp, x: _shifted(xp, x) / const(x, 6), promote="same", grads=(
    lambda xp, g, x: choose(xp, (x > -3) & (x < 3), g * const(g, _SIXTH), const(g, 0)),))
_HARDSWISH = Elementwise("hardswish", lambda xp, x: x * _shifted(xp, x) / const(x, 6), promote="same", grads=(_hardswish_grad,))


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    return finish(input, apply(_HARDSIGMOID, (floating(input, "hardsigmoid_cpu", "hardsigmoid"),)), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x) (Howard et al. 2019)."""
    return finish(input, apply(_HARDSWISH, (floating(input, "hardswish_cpu", "hardswish"),)), inplace)


_THRESHOLD = Elementwise("threshold", lambda xp, x, limit, value: choose(xp, x <= limit, value, x), promote="same", grads=(
    lambda xp, g, x, limit: _outside(xp, g, x <= limit), None, None))


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, value elsewhere."""
    if need(input, "threshold").dtype.category == dt.COMPLEX or input.dtype is dt.bool_:
        raise not_implemented("threshold_cpu", input.dtype)
    limit, value = scalar(threshold, "threshold", "threshold", 2), scalar(value, "threshold", "value", 3)
    return finish(input, apply(_THRESHOLD, (input, limit, value)), inplace, repeats=True)  # done twice, it changes nothing more


# -- shrinkage ---------------------------------------------------------------------------------------------------------------


def _within(x, size):
    return (x >= -size) & (x <= size)


_HARDSHRINK = Elementwise("hardshrink", lambda xp, x, size: choose(xp, _within(x, size), const(x, 0), x), promote="same", grads=(
    lambda xp, g, x, size: _outside(xp, g, _within(x, size)), None))
_SOFTSHRINK = Elementwise(
    "softshrink", in_blocks(lambda xp, x, size, bound: choose(xp, x > size, x - size, choose(xp, x < -size, x + size, x * const(x, 0)))), promote="same",
    grads=(lambda xp, g, x, size, bound: _outside(xp, g, _within(x, bound)), None, None))  # which 16 bits may round to an element


@public(out=True)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, or 0 where |x| <= lambd."""
    floating(input, "hardshrink_cpu", "hardshrink")
    return apply(_HARDSHRINK, (input, rounded(scalar(lambd, "hardshrink", "lambd", 2), input.dtype)))


@with_out
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved by lambd towards 0; 0 where |x| <= lambd."""
    floating(input, "softshrink_check", "softshrink")
    size = scalar(lambd, "softshrink", "lambd", 2)
    import ml_dtypes
    if not 0 <= size <= float(ml_dtypes.finfo(input.dtype.np).max):
        most = float(ml_dtypes.finfo(input.dtype.np).max)
        raise RuntimeError(f"lambda must be in range [0, {most:g}] for input dtype {input.dtype.short}, but found {size:g}")
    return apply(_SOFTSHRINK, (input, size, rounded(size, input.dtype)))


# -- in-place names ----------------------------------------------------------------------------------------------------------


def _twin(f, name: str, *, published: bool = False):
    """`name_`: f without the `inplace` argument, writing into its input."""
    names = [p for p in f.__code__.co_varnames[:f.__code__.co_argcount] if p != "inplace"]

    def g(*args, **kwargs):
        if len(args) > len(names) or "inplace" in kwargs:
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in args)})")
        return f(*args, **kwargs)
    g.__doc__ = f.__doc__
    signature = inspect.signature(f)
    g.__signature__ = signature.replace(parameters=[signature.parameters[p] for p in names])
    g_ = in_place(g, name + "_")
    return public(method=False)(g_) if published else g_


leaky_relu_, elu_, hardtanh_ = _twin(leaky_relu, "leaky_relu"), _twin(elu, "elu"), _twin(hardtanh, "hardtanh")
selu_, celu_, rrelu_, threshold_ = (_twin(f, f.__name__, published=True) for f in (selu, celu, rrelu, threshold))
