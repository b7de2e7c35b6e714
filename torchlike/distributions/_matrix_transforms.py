"""Transforms to positive-definite matrices and to Cholesky factors of correlation matrices."""
from __future__ import annotations

import math

from .. import linalg
from .._functions import torch as F
from ..ops.queries import finfo
from . import constraints
from .transforms import LowerCholeskyTransform, Transform, _Parameterless
from .utils import softplus


class PositiveDefiniteTransform(_Parameterless):
    """Square matrices to L L^T, L that of LowerCholeskyTransform."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x):
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


def _below(n, diagonal=-1):
    """Where a flattened n by n matrix lies below a diagonal, row by row."""
    i, j = F["tril_indices"](n, n, diagonal)
    return i * n + j


def _rows(length):
    """n, for length = n (n - 1) / 2."""
    return round((0.25 + 2 * length) ** 0.5 + 0.5)


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers to L with rows of length 1: tanh of each is the share (with its sign) of what is left of its row's length."""

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        n, eps = _rows(x.shape[-1]), finfo(x.dtype).eps
        if n * (n - 1) > 2 * x.shape[-1]:  # of other wrong sizes torch sees later that they do not fit
            raise ValueError(f"The size of last dimension is {x.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix.")
        flat = x.new_zeros(x.shape[:-1] + (n * n,))
        flat[..., _below(n).to(x.device)] = x.tanh().clamp(min=-1 + eps, max=1 - eps)
        share = flat.reshape(x.shape[:-1] + (n, n))
        left = (1 - share.pow(2)).sqrt().cumprod(-1)
        before = F["cat"]([F["ones_like"](left[..., :1]), left[..., :-1]], -1)
        return (share + F["eye"](n, dtype=x.dtype, device=x.device)) * before

    def _left(self, y):
        """What is left of each row's squared length after each element."""
        return 1 - y.pow(2).cumsum(-1)

    def _inverse(self, y):
        n, left = y.shape[-1], self._left(y)
        before = F["cat"]([F["ones_like"](left[..., :1]), left[..., :-1]], -1)
        at = _below(n).to(y.device)
        share = y.flatten(-2)[..., at] / before.flatten(-2)[..., at].sqrt()
        return (share.log1p() - (-share).log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        """Of x to the part of y below the diagonal."""
        at = _below(y.shape[-1], -2).to(y.device)
        rows = 0.5 * self._left(y).flatten(-2)[..., at].log().sum(-1)
        return rows - 2 * (x + softplus(-2 * x) - math.log(2)).sum(-1)

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = _rows(shape[-1])
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)
