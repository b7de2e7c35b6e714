"""Layer, group and batch normalisation of few numbers in NumPy, for the first tier: nothing but its functions, which take longer than the arithmetic.

Each function makes the kernel of a plan, or None where numbers are many or of 16 bits.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..._core.aval import Aval
from ...ops.totals import MANY


class _Moments:
    """Means over some axes of arrays of one shape."""

    def __init__(self, shape: tuple, axes: tuple, dtype: np.dtype, eps: float):
        self.axes, self.first = axes, tuple(slice(1) if d in axes else slice(None) for d in range(len(shape)))
        self.one, self.eps, self.count = dtype.type(1), dtype.type(eps), dtype.type(math.prod(shape[d] for d in axes))

    def mean(self, x: np.ndarray) -> np.ndarray:
        mean = np.add.reduce(x, self.axes, None, None, True)
        mean /= self.count
        return mean

    def normalized(self, x: np.ndarray) -> tuple:
        """(x without its mean and in units of its standard deviation, 1 / that, the mean, the variance); of equal numbers exactly zero,
        though the mean is rounded."""
        first = x[self.first]
        y = x - first
        mean = self.mean(y)
        y -= mean
        mean += first
        var = self.mean(y * y)
        scale = var + self.eps
        np.sqrt(scale, scale)
        np.divide(self.one, scale, scale)
        y *= scale
        return y, scale, mean, var

    def gradient(self, g: np.ndarray, y: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Of x, by the gradient of y."""
        made = g - self.mean(g)
        made -= y * self.mean(g * y)
        made *= scale
        return made


def _serves(x: Aval, *parameters: Aval | None) -> bool:
    return x.dtype.np.char in "fd" and 0 < x.numel < MANY and all(p is None or p.dtype is x.dtype for p in parameters)


def _affine(y: np.ndarray, weight, bias) -> np.ndarray:
    if weight is not None:
        y *= weight
    if bias is not None:
        y += bias
    return y


def _needed(moments: _Moments, needs: tuple, y: np.ndarray, scale: np.ndarray, g: np.ndarray, h: np.ndarray, others: tuple) -> list:
    """Those of the gradients of x (by h, the gradient of y, which has its shape), of the weight and of the bias (by g, summed over the other axes)."""
    made = [moments.gradient(h, y, scale).reshape(g.shape)] if needs[0] else []
    if needs[1]:
        made.append(np.add.reduce(g * y.reshape(g.shape), others))
    if needs[2]:
        made.append(np.add.reduce(g, others))
    return made


def layer_norm(plan) -> Callable | None:
    """`(x, weight, bias) -> y`"""
    x, (k, eps) = plan.avals[0], plan.statics
    if not _serves(*plan.avals):
        return None
    moments = _Moments(x.shape, tuple(range(x.ndim - k, x.ndim)), x.dtype.np, eps)
    return lambda x, weight, bias: _affine(moments.normalized(x)[0], weight, bias)


def layer_norm_gradients(plan) -> Callable | None:
    """`(x, weight, g) -> gradients`, those that are needed."""
    forward, needs = plan.statics
    x, (k, eps) = forward.avals[0], forward.statics
    if not _serves(*forward.avals):
        return None
    moments, lead = _Moments(x.shape, tuple(range(x.ndim - k, x.ndim)), x.dtype.np, eps), tuple(range(x.ndim - k))

    def run(x, weight, g):
        y, scale, _, _ = moments.normalized(x)
        return _needed(moments, needs, y, scale, g, g if weight is None else g * weight, lead)
    return run


def _by_channel(numbers, ndim: int):
    """A number per channel, for (N, C, *)."""
    return None if numbers is None else numbers.reshape(-1, *(1,) * (ndim - 2))


def group_norm(plan) -> Callable | None:
    """`(x, weight, bias) -> y`"""
    a, (groups, eps) = plan.avals[0], plan.statics
    if not _serves(*plan.avals):
        return None
    rows = (a.shape[0] * groups, -1)
    moments = _Moments((rows[0], a.numel // rows[0]), (1,), a.dtype.np, eps)
    return lambda x, weight, bias: _affine(moments.normalized(x.reshape(rows))[0].reshape(a.shape), _by_channel(weight, a.ndim), _by_channel(bias, a.ndim))


def group_norm_gradients(plan) -> Callable | None:
    """`(x, weight, g) -> gradients`, those that are needed."""
    forward, needs = plan.statics
    a, (groups, eps) = forward.avals[0], forward.statics
    if not _serves(*forward.avals):
        return None
    rows, others = (a.shape[0] * groups, -1), (0, *range(2, a.ndim))
    moments = _Moments((rows[0], a.numel // rows[0]), (1,), a.dtype.np, eps)

    def run(x, weight, g):
        y, scale, _, _ = moments.normalized(x.reshape(rows))
        h = g if weight is None else g * _by_channel(weight, a.ndim)
        return _needed(moments, needs, y, scale, g, h.reshape(rows), others)
    return run


def batch_norm(plan) -> Callable | None:
    """`(x, weight, bias) -> [y, means, variances without correction]`, in training."""
    a, (eps,) = plan.avals[0], plan.statics
    if not _serves(*plan.avals):
        return None
    moments = _Moments(a.shape, (0, *range(2, a.ndim)), a.dtype.np, eps)

    def run(x, weight, bias):
        y, _, mean, var = moments.normalized(x)
        return [_affine(y, _by_channel(weight, a.ndim), _by_channel(bias, a.ndim)), mean.reshape(-1), var.reshape(-1)]
    return run


def batch_norm_gradients(plan) -> Callable | None:
    """`(x, weight, g) -> gradients`, those that are needed."""
    forward, needs = plan.statics
    a, (eps,) = forward.avals[0], forward.statics
    if not _serves(*forward.avals):
        return None
    others = (0, *range(2, a.ndim))
    moments = _Moments(a.shape, others, a.dtype.np, eps)

    def run(x, weight, g, *of_moments):
        y, scale, _, _ = moments.normalized(x)
        return _needed(moments, needs, y, scale, g, g if weight is None else g * _by_channel(weight, a.ndim), others)
    return run
