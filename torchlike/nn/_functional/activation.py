"""Activation functions that train hot: gelu, silu, relu and their in-place forms."""
from __future__ import annotations

import math

import numpy as np

from ..._core.registry import Elementwise
from ..._public import write_into
from ..._tensor import Tensor, apply
from ...ops.unary import special


def _erf(xp, x):
    return special(xp).erf(x)


_SQRT_HALF, _INV_SQRT_2PI, _TANH_SCALE = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi), math.sqrt(2 / math.pi)


def _c(x, value):
    return np.asarray(value, x.dtype)


def _gelu(xp, x, tanh):
    if tanh:
        inner = _c(x, _TANH_SCALE) * (x + _c(x, 0.044715) * x * x * x)
        return _c(x, 0.5) * x * (1 + xp.tanh(inner))
    return _c(x, 0.5) * x * (1 + _erf(xp, x * _c(x, _SQRT_HALF)))


def _gelu_grad(xp, g, x, tanh):
    if tanh:
        square = x * x
        t = xp.tanh(_c(x, _TANH_SCALE) * (x + _c(x, 0.044715) * square * x))
        slope = _c(x, _TANH_SCALE) * (1 + _c(x, 3 * 0.044715) * square)
        return g * _c(x, 0.5) * (1 + t + x * (1 - t * t) * slope)
    cdf = _c(x, 0.5) * (1 + _erf(xp, x * _c(x, _SQRT_HALF)))
    return g * (cdf + x * _c(x, _INV_SQRT_2PI) * xp.exp(_c(x, -0.5) * x * x))


_GELU = Elementwise("gelu", _gelu, promote="same", grads=(_gelu_grad,))


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), exactly ('none') or by tanh (Hendrycks & Gimpel 2016)."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    _floating(input, "GeluKernelImpl")
    return apply(_GELU, (input,), (approximate == "tanh",))


def _floating(t: Tensor, kernel: str) -> None:
    if t.dtype.category < 2:
        raise RuntimeError(f'"{kernel}" not implemented for \'{t.dtype.short}\'')


def _logistic(xp, x):
    e = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _silu_grad(xp, g, x):
    s = _logistic(xp, x)
    return g * s * (1 + x * (1 - s))


_SILU = Elementwise("silu", lambda xp, x: x * _logistic(xp, x), promote="same", grads=(_silu_grad,))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    _floating(input, "silu_cpu")
    return finish(input, apply(_SILU, (input,)), inplace)


def finish(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """The result, or input holding it."""
    if not inplace:
        return result
    input._check_write()
    return write_into(input, result)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return input.relu_() if inplace else input.relu()
