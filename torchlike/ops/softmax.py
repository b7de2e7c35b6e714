"""softmax, log_softmax, logsumexp."""
from __future__ import annotations

import numpy as np
from jax import numpy as jnp

from .._arguments import as_dim, as_dims, flag
from .._core import dtype as dt
from .._core.arrays import cast
from .._core.errors import not_implemented
from .._core.registry import Op
from .._public import public
from .._tensor import Tensor, apply
from .creation import _check_dtype
from .reductions import reduced, restore

_FLOAT32 = np.dtype(np.float32)


def _wide(x):
    """16-bit floats are summed in float32."""
    return cast(np if x.__class__ is np.ndarray else jnp, x, _FLOAT32) if x.dtype.itemsize == 2 else x


def _softmax(xp, x, dim):
    if not x.size:
        return x
    w = _wide(x)
    if xp is np and w.ndim and w.dtype.kind == "f":
        e = w - np.maximum.reduce(w, dim, keepdims=True)
        np.exp(e, out=e)
        e /= np.add.reduce(e, dim, keepdims=True)
        return cast(xp, e, x.dtype)
    e = xp.exp(w - w.max(axis=dim, keepdims=True))
    return cast(xp, e / e.sum(axis=dim, keepdims=True), x.dtype)


def _softmax_vjp(xp, g, out, dim):
    g, y = _wide(g), _wide(out)
    p = g * y
    return cast(xp, p - y * p.sum(axis=dim, keepdims=True), out.dtype)


def _log_softmax(xp, x, dim):
    if not x.size:
        return x
    w = _wide(x)
    if xp is np and w.ndim and w.dtype.kind == "f":
        shifted = w - np.maximum.reduce(w, dim, keepdims=True)
        shifted -= np.log(np.add.reduce(np.exp(shifted), dim, keepdims=True))
        return cast(xp, shifted, x.dtype)
    shifted = w - w.max(axis=dim, keepdims=True)
    return cast(xp, shifted - xp.log(xp.exp(shifted).sum(axis=dim, keepdims=True)), x.dtype)


def _log_softmax_vjp(xp, g, out, dim):
    g, y = _wide(g), _wide(out)
    return cast(xp, g - xp.exp(y) * g.sum(axis=dim, keepdims=True), out.dtype)


def _same(a, dim):
    return a.shape, a.dtype


SOFTMAX = Op("softmax", _softmax, shape=_same, vjp=_softmax_vjp)
LOG_SOFTMAX = Op("log_softmax", _log_softmax, shape=_same, vjp=_log_softmax_vjp)


def _normalized(op, name):
    def f(input, dim, dtype=None) -> Tensor:
        if dtype is not None:
            input = input.to(_check_dtype(dtype))
        a = input._value.aval
        d = as_dim(dim, a.ndim)
        if a.dtype.category != dt.FLOAT and a.numel:
            raise not_implemented(name + "_lastdim" * (d == max(a.ndim - 1, 0)) + "_kernel_impl", a.dtype)
        return apply(op, (input,), (d if a.ndim else None,))
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{name} over dim; dtype converts the input first."
    return public(out=True)(f)


softmax, log_softmax = _normalized(SOFTMAX, "softmax"), _normalized(LOG_SOFTMAX, "log_softmax")


def _logsumexp(xp, x, dims, keepdim):
    w = _wide(x)
    top = (w.real if w.dtype.kind == "c" else w).max(axis=dims, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    r = xp.log(xp.exp(w - top).sum(axis=dims, keepdims=True)) + top
    return (r if keepdim else xp.squeeze(r, dims)).astype(x.dtype)


def _logsumexp_vjp(xp, g, x, out, plan):
    dims, keepdim = plan.statics
    shape = plan.avals[0].shape
    out = restore(xp, out, shape, dims, keepdim)
    e = xp.exp(x - out)  # NaN where the sum is infinite, as in torch
    return restore(xp, g, shape, dims, keepdim) * (xp.conj(e) if e.dtype.kind == "c" else e)


LOGSUMEXP = Op("logsumexp", _logsumexp, shape=lambda a, dims, keepdim: (reduced(a.shape, dims, keepdim), a.dtype), vjp=_logsumexp_vjp)


@public(out=True)
def logsumexp(input, dim, keepdim: bool = False) -> Tensor:
    """log(sum(exp(input))) over dim, without overflow."""
    if dim is None:
        raise TypeError("logsumexp(): argument 'dim' (position 2) must be tuple of ints, not NoneType")
    if input.dtype.category < dt.FLOAT:
        input = input.to(dt.get_default_dtype())
    n = input._value.aval.ndim
    dims = as_dims(dim, n)
    if isinstance(dim, (tuple, list)) and not dim and n and not keepdim and input._value.aval.numel:
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {[1] * n}")  # torch's own limit
    if not input._value.aval.numel:
        return input.exp().sum(dims, keepdim).log()
    return apply(LOGSUMEXP, (input,), (dims, keepdim if keepdim.__class__ is bool else flag(keepdim)))
