"""The Wishart distribution."""
from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from numbers import Number

from .. import linalg
from .._functions import torch as F
from .._tensor import Size, Tensor
from ..ops.queries import finfo
from . import constraints
from .chi2 import Chi2
from .distribution import ExponentialFamily
from .multivariate_normal import _NAMES, _half_log_det, _precision_to_scale_tril
from .utils import lazy_property


class Wishart(ExponentialFamily):
    """Wishart(df, covariance_matrix) or precision_matrix= or scale_tril=: the sum of df outer products of normal vectors."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self):
        """df above the matrices' size - 1."""
        return {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def __init__(self, df: Tensor | float, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        given = [(n, m) for n, m in zip(_NAMES, (covariance_matrix, precision_matrix, scale_tril)) if m is not None]
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        (name, matrix), = given
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Number):
            batch = Size(matrix.shape[:-2])
            self.df = F["tensor"](df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch = F["broadcast_shapes"](matrix.shape[:-2], df.shape)
            self.df = df.expand(batch)
        n = matrix.shape[-1]
        if self.df.le(n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if self.df.lt(n).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2)
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        else:
            self._unbroadcasted_scale_tril = linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        square = Size(batch_shape) + self.event_shape
        made = {n: self.__dict__[n].expand(square) for n in _NAMES if n in self.__dict__}
        return self._expanded(Wishart, _instance, batch_shape, df=self.df.expand(batch_shape),
                              _unbroadcasted_scale_tril=self._unbroadcasted_scale_tril.expand(square), **made)

    @lazy_property
    def scale_tril(self):
        """The covariance's Cholesky factor."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        """The covariance of the normal vectors."""
        return (self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self):
        """The covariance's inverse."""
        return F["cholesky_inverse"](self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    @property
    def mean(self) -> Tensor:
        """df times the covariance."""
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """(df - n - 1) times the covariance; NaN where that is not positive."""
        factor = self.df - self._event_shape[-1] - 1
        return F["where"](factor <= 0, math.nan, factor)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (V_ij^2 + V_ii V_jj)."""
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (self.covariance_matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape=Size()):
        """Products of L A, A lower triangular with chi variables on its diagonal and normal ones below."""
        n, lower = self._event_shape[-1], self._unbroadcasted_scale_tril
        degrees = self.df.unsqueeze(-1) - F["arange"](n, dtype=lower.dtype, device=lower.device)
        chi = Chi2(degrees.expand(self._batch_shape + (n,))).rsample(sample_shape).sqrt()
        a = chi.clamp(min=finfo(chi.dtype).eps).diag_embed()
        i, j = F["tril_indices"](n, n, offset=-1)
        a[..., i, j] = F["randn"](Size(sample_shape) + self._batch_shape + (n * (n - 1) // 2,), dtype=a.dtype, device=a.device)
        root = lower @ a
        return root @ root.mT

    def _any_of_batch(self, found):
        return found.any(tuple(range(-len(self._batch_shape), 0))) if self._batch_shape else found

    def rsample(self, sample_shape: Sequence[int] = Size(), max_try_correction=None) -> Tensor:
        """Samples by Bartlett's decomposition. Singular ones are drawn again, max_try_correction (10) times; before that, as in torch,
        the first draw of those that are not singular is replaced: the same seed gives the same numbers."""
        sample = self._bartlett_sampling(Size(sample_shape))
        again = self._any_of_batch(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            count = int(again.sum())
            if not count:
                break
            new = self._bartlett_sampling(Size((count,)))
            sample[again] = new
            again[again.clone()] = self._any_of_batch(~self.support.check(new))
        return sample

    def _log_scale(self):
        """n log 2 / 2 + log det L."""
        return self._event_shape[-1] * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril)

    def log_prob(self, value: Tensor) -> Tensor:
        """(df - n - 1) / 2 log det X - tr(V^-1 X) / 2 - df log(2^(n/2) det L) - log Gamma_n(df / 2)."""
        if self._validate_args:
            self._validate_sample(value)
        n = self._event_shape[-1]
        trace = F["cholesky_solve"](value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (self.df - n - 1) / 2 * linalg.slogdet(value).logabsdet - trace / 2 - self.df * self._log_scale() - F["mvlgamma"](self.df / 2, p=n)

    def entropy(self) -> Tensor:
        """(n + 1) log(2^(n/2) det L) + log Gamma_n(df / 2) - (df - n - 1) / 2 digamma_n(df / 2) + n df / 2."""
        n = self._event_shape[-1]
        half = self.df / 2
        digammas = (half.unsqueeze(-1) - F["arange"](n, dtype=half.dtype, device=half.device) / 2).digamma().sum(-1)
        return (n + 1) * self._log_scale() + F["mvlgamma"](half, p=n) - (self.df - n - 1) / 2 * digammas + n * half

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        n = self._event_shape[-1]
        power = y + (n + 1) / 2
        return power * (n * math.log(2) - linalg.slogdet(-2 * x).logabsdet) + F["mvlgamma"](power, p=n)
