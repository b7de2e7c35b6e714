"""The multivariate normal distribution whose covariance is of low rank but for its diagonal."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .. import linalg
from .._functions import torch as F
from .._tensor import Size, Tensor
from . import constraints
from .distribution import Distribution
from .multivariate_normal import _half_log_det, _whitened
from .utils import lazy_property, standard_normal


class LowRankMultivariateNormal(Distribution):
    """LowRankMultivariateNormal(loc, cov_factor, cov_diag): covariance W W^T + D.

    Densities need only the small matrix C = 1 + W^T D^-1 W = L L^T: with A = L^-1 W^T D^-1 the inverse is D^-1 - A^T A, and
    det(W W^T + D) = det C det D.
    """

    arg_constraints = {"loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
                       "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            batch = F["broadcast_shapes"](loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}") from error
        self.loc, self.cov_diag, self.cov_factor = loc.expand(batch + event), cov_diag.expand(batch + event), cov_factor.expand(batch + cov_factor.shape[-2:])
        self._factor, self._diagonal = cov_factor, cov_diag
        eye = F["eye"](cov_factor.shape[-1], dtype=cov_factor.dtype, device=cov_factor.device)
        self._small = linalg.cholesky(eye + self._scaled() @ cov_factor)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        vector = Size(batch_shape) + self.event_shape
        return self._expanded(LowRankMultivariateNormal, _instance, batch_shape, loc=self.loc.expand(vector), cov_diag=self.cov_diag.expand(vector),
                              cov_factor=self.cov_factor.expand(vector + self.cov_factor.shape[-1:]), _factor=self._factor,
                              _diagonal=self._diagonal, _small=self._small)

    def _scaled(self):
        """W^T D^-1."""
        return self._factor.mT / self._diagonal.unsqueeze(-2)

    def _correction(self):
        """A = L^-1 W^T D^-1."""
        return linalg.solve_triangular(self._small, self._scaled(), upper=False)

    def _log_det(self):
        return 2 * _half_log_det(self._small) + self._diagonal.log().sum(-1)

    def _squared_distance(self, x):
        """x^T (W W^T + D)^-1 x."""
        within = (self._scaled() @ x.unsqueeze(-1)).squeeze(-1)
        return (x.pow(2) / self._diagonal).sum(-1) - _whitened(self._small, within).pow(2).sum(-1)

    def _squared_trace(self, root):
        """tr((W W^T + D)^-1 R R^T)."""
        return (root.pow(2) / self._diagonal.unsqueeze(-1)).sum((-2, -1)) - (self._correction() @ root).pow(2).sum((-2, -1))

    @property
    def mean(self) -> Tensor:
        """loc."""
        return self.loc

    mode = mean

    @lazy_property
    def variance(self) -> Tensor:
        """The covariance's diagonal."""
        return (self._factor.pow(2).sum(-1) + self._diagonal).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The covariance's Cholesky factor, through 1 + D^-1/2 W W^T D^-1/2, whose eigenvalues are at least 1."""
        root = self._diagonal.sqrt().unsqueeze(-1)
        scaled = self._factor / root
        eye = F["eye"](self._event_shape[0], dtype=scaled.dtype, device=scaled.device)
        return (root * linalg.cholesky(eye + scaled @ scaled.mT)).expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        """W W^T + D."""
        return (self._factor @ self._factor.mT + self._diagonal.diag_embed()).expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self):
        """D^-1 - A^T A."""
        a = self._correction()
        return (self._diagonal.reciprocal().diag_embed() - a.mT @ a).expand(self._batch_shape + self._event_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """loc + W u + D^1/2 v, u and v standard normal."""
        shape = self._extended_shape(sample_shape)
        u = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc.dtype, self.loc.device)
        v = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + (self._factor @ u.unsqueeze(-1)).squeeze(-1) + self._diagonal.sqrt() * v

    def log_prob(self, value: Tensor) -> Tensor:
        """-(n log 2 pi + log det + squared distance) / 2."""
        if self._validate_args:
            self._validate_sample(value)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + self._squared_distance(value - self.loc))

    def entropy(self) -> Tensor:
        """(n (1 + log 2 pi) + log det) / 2."""
        return (0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det())).expand(self._batch_shape)
