"""Smooth activation functions: gelu, silu, mish, softplus, glu and their kin."""
from __future__ import annotations

import math

import numpy as np

from ..._arguments import as_dim
from ..._core import dtype as dt
from ..._core.arrays import cast
from ..._core.layout import combined
from ..._core.numpy_erf import normal_distribution
from ..._core.registry import Elementwise, Op
from ..._public import with_out
from ..._tensor import Tensor, apply
from ...ops.blocks import in_blocks
from ...ops.choosing import choose
from ...ops.exponentials import log1p
from ...ops.exponentials import softplus as one_softplus
from ...ops.limits import at_most
from ...ops.unary import logistic, special
from .common import const, finish, floating, need, not_implemented, scalar, wide

_SQRT_HALF, _INV_SQRT_2PI, _TANH_SCALE = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi), math.sqrt(2 / math.pi)


def _distribution(xp, x):
    """Phi(x)"""
    return normal_distribution(x) if xp is np else const(x, 0.5) * (1 + special(xp).erf(x * const(x, _SQRT_HALF)))


@in_blocks
def _gelu(xp, x, tanh):
    if tanh:
        inner = const(x, _TANH_SCALE) * (x + const(x, 0.044715) * x * x * x)
        return const(x, 0.5) * x * (1 + xp.tanh(inner))
    return x * _distribution(xp, x)


@in_blocks
def _gelu_grad(xp, g, x, tanh):
    if tanh:
        square = x * x
        t = xp.tanh(const(x, _TANH_SCALE) * (x + const(x, 0.044715) * square * x))
        slope = const(x, _TANH_SCALE) * (1 + const(x, 3 * 0.044715) * square)
        return g * const(x, 0.5) * (1 + t + x * (1 - t * t) * slope)
    if xp is not np or x.dtype != np.float32 or not x.ndim:
        return g * (_distribution(xp, x) + x * const(x, _INV_SQRT_2PI) * xp.exp(const(x, -0.5) * x * x))
    density = np.multiply(x, x)
    np.multiply(density, const(x, -0.5), out=density)
    np.exp(density, out=density)
    np.multiply(density, const(x, _INV_SQRT_2PI), out=density)
    np.multiply(density, x, out=density)
    np.add(density, _distribution(np, x), out=density)
    return np.multiply(density, g, out=density)


_GELU = Elementwise("gelu", _gelu, promote="same", grads=(_gelu_grad,))


@with_out
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """x * Phi(x), exactly ('none') or by tanh (Hendrycks & Gimpel 2016)."""
    floating(input, "GeluKernelImpl", "gelu")
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return apply(_GELU, (input,), (approximate == "tanh",))


def _silu_grad(xp, g, x):
    s = logistic(xp, x)
    slope = s * (1 + x * (1 - s))
    return g * (xp.conj(slope) if slope.dtype.kind == "c" else slope)


_SILU = Elementwise("silu", lambda xp, x: x * logistic(xp, x), promote="same", grads=(_silu_grad,))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x) (Elfwing et al. 2017)."""
    if need(input, "silu").dtype.category < dt.FLOAT:
        raise not_implemented("silu_cpu", input.dtype)
    return finish(input, apply(_SILU, (input,)), inplace)


def _tanh_softplus(xp, x):
    """tanh(softplus(x)), where 1 + e = exp(softplus(x)); and sigmoid(x)"""
    if xp is not np:
        return xp.tanh(one_softplus(xp, x)), logistic(xp, x)
    e = xp.exp(at_most(xp, x, const(x, 20)))
    n = e * (e + const(x, 2))
    return n / (n + const(x, 2)), e / (1 + e)


@in_blocks
def _mish_grad(xp, g, x):
    t, s = _tanh_softplus(xp, x)
    return g * (t + x * s * (1 - t * t))


_MISH = Elementwise("mish", in_blocks(lambda xp, x: x * _tanh_softplus(xp, x)[0]), promote="same", grads=(_mish_grad,))


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)) (Misra 2019)."""
    return finish(input, apply(_MISH, (floating(input, "mish_cpu", "mish"),)), inplace)


@in_blocks
def _softplus(xp, x, beta, threshold):
    z = x * beta
    if xp is np and threshold >= 20 and x.dtype.itemsize <= 4:
        return one_softplus(np, x) if beta == 1 else choose(np, z > threshold, x, one_softplus(np, z) / beta)
    return choose(xp, z > threshold, x, log1p(xp, xp.exp(choose(xp, z > threshold, threshold, z))) / beta)


@in_blocks
def _softplus_grad(xp, g, x, beta, threshold):
    z = x * beta
    return choose(xp, z > threshold, g, g * logistic(xp, choose(xp, z > threshold, threshold, z)))


_SOFTPLUS = Elementwise("softplus", _softplus, promote="same", grads=(_softplus_grad, None, None))


@with_out
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x > threshold."""
    floating(input, "softplus_cpu", "softplus")
    return apply(_SOFTPLUS, (input, scalar(beta, "softplus", "beta", 2), scalar(threshold, "softplus", "threshold", 3)))


@in_blocks
def _logsigmoid(xp, x):
    return cast(xp, 0 - one_softplus(xp, -wide(x)), x.dtype)


@in_blocks
def _logsigmoid_vjp(xp, g, x):
    w = wide(x)
    e = xp.exp(-xp.abs(w))
    small = e / (1 + e)
    return wide(g) * choose(xp, w < 0, 1 - small, small)


_LOGSIGMOID = Op("log_sigmoid", _logsigmoid, shape=lambda x: (x.shape, x.dtype), vjp=_logsigmoid_vjp, torch_name="LogSigmoidBackward0")


@with_out
def logsigmoid(input: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x)))."""
    return apply(_LOGSIGMOID, (floating(input, "log_sigmoid_cpu", "log_sigmoid"),))


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    if isinstance(input, Tensor) and input.dtype is dt.bool_:
        raise not_implemented("abs_cpu", input.dtype)
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    need(input, "relu")
    return input.relu_() if inplace else input.relu()


def _halves(x, dim):
    n = x.shape[dim] // 2
    lead = (slice(None),) * dim
    return x[(*lead, slice(0, n))], x[(*lead, slice(n, 2 * n))]


def _glu(xp, x, dim):
    a, b = _halves(wide(x), dim)
    return cast(xp, a * logistic(xp, b), x.dtype)


def _glu_vjp(xp, g, x, dim):
    a, b = _halves(wide(x), dim)
    s, g = logistic(xp, b), wide(g)
    return cast(xp, xp.concatenate([g * s, g * a * s * (1 - s)], axis=dim), x.dtype)


_GLU = Op("glu", _glu, shape=lambda x, dim: ((*x.shape[:dim], x.shape[dim] // 2, *x.shape[dim + 1:]), x.dtype), vjp=_glu_vjp)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a * sigmoid(b) for input = (a, b) along dim (Dauphin et al. 2017)."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    d = as_dim(dim, input.ndim)
    if input.shape[d] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {d} is size {input.shape[d]}")
    made = apply(_GLU, (floating(input, "glu_cpu", "glu"),), (d,))
    made._layout = combined(made._aval.shape, (input.narrow(d, 0, input.shape[d] // 2)._strided(),)) if input._layout is not None else None
    return made

