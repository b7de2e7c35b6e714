"""The arithmetic of update rules, for NumPy and jax.numpy: hyperparameters are cast to the tensors' dtype, and 16-bit
tensors are computed in float32 and rounded once per operation, as torch's CPU kernels do."""

from __future__ import annotations

import numpy as np


def number(xp, x, dtype):
    """A hyperparameter in the dtype that `dtype`'s tensors are computed in."""
    if xp is np and x.__class__ is float:
        return x
    return xp.asarray(x).astype(np.float32 if dtype.itemsize == 2 else dtype)


def _up(x):
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _down(x, like):
    return x if x.dtype == like.dtype else x.astype(like.dtype)


def like(xp, x, p):
    """x in p's dtype"""
    return x.astype(p.dtype)


def add(xp, x, y, alpha):
    """x + alpha * y; torch rounds this one's alpha to 16 bits too"""
    if x.dtype.itemsize == 2:
        return (_up(x) + xp.asarray(alpha).astype(x.dtype).astype(np.float32) * _up(y)).astype(x.dtype)
    return x + number(xp, alpha, x.dtype) * y


def plus(xp, x, a):
    """x + a, a number"""
    return _down(_up(x) + number(xp, a, x.dtype), x)


def mul(xp, x, a):
    """x * a, a number"""
    return _down(_up(x) * number(xp, a, x.dtype), x)


def div(xp, x, a):
    """x / a, a number"""
    return _down(_up(x) / number(xp, a, x.dtype), x)


def sqrt(xp, x):
    return _down(xp.sqrt(_up(x)), x)


def addcmul(xp, x, a, b, value):
    """x + value * a * b"""
    return _down(_up(x) + number(xp, value, x.dtype) * _up(a) * _up(b), x)


def addcdiv(xp, x, a, b, value):
    """x + value * a / b"""
    return _down(_up(x) + number(xp, value, x.dtype) * _up(a) / _up(b), x)


def lerp(xp, x, y, weight, small=None):
    """x + weight * (y - x), in the form that is exact at the nearer end; `small` where it is known that weight < 0.5"""
    a, b, w = _up(x), _up(y), number(xp, weight, x.dtype)
    if small is None and xp is np and w.__class__ is float:
        small = w < 0.5
    if small is not None:
        return _down(a + w * (b - a) if small else b - (b - a) * (1 - w), x)
    return _down(xp.where(w < 0.5, a + w * (b - a), b - (b - a) * (1 - w)), x)


def over(xp, a, x):
    """a / x, a number over a tensor"""
    return _down(number(xp, a, x.dtype) / _up(x), x)
