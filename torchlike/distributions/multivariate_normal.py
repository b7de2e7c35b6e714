"""The multivariate normal distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .. import linalg
from .._functions import torch as F
from .._tensor import Size, Tensor
from . import constraints
from .distribution import Distribution
from .utils import lazy_property, standard_normal

_NAMES = ("covariance_matrix", "precision_matrix", "scale_tril")


def _whitened(lower, x):
    """lower^-1 x for vectors x; one solve for all of them where there is one matrix."""
    if lower.dim() == 2:
        flat = x.reshape(-1, x.shape[-1]).mT
        return linalg.solve_triangular(lower, flat, upper=False).mT.reshape(x.shape)
    return linalg.solve_triangular(lower, x.unsqueeze(-1), upper=False).squeeze(-1)


def _batch_mv(bmat, bvec):
    """Matrix times vector, batches of both broadcast."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL, bx):
    """x^T M^-1 x where M = L L^T."""
    return _whitened(bL, bx).square().sum(-1)


def _half_log_det(lower):
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(P):
    """The Cholesky factor of a precision matrix's inverse, without inverting it: P = U U^T backwards."""
    flipped = linalg.cholesky(P.flip(-2, -1))
    upper = flipped.flip(-2, -1).mT
    eye = F["eye"](P.shape[-1], dtype=P.dtype, device=P.device)
    return linalg.solve_triangular(upper, eye, upper=False)


class MultivariateNormal(Distribution):
    """MultivariateNormal(loc, covariance_matrix) or precision_matrix= or scale_tril=, the covariance's Cholesky factor."""

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = [(n, m) for n, m in zip(_NAMES, (covariance_matrix, precision_matrix, scale_tril)) if m is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        (name, matrix), = given
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional{'' if name == 'scale_tril' else ', with optional leading batch dimensions'}")
        batch = F["broadcast_shapes"](matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        self.loc = loc.expand(batch + (matrix.shape[-1],))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        else:
            self._unbroadcasted_scale_tril = linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        batch_shape = Size(batch_shape)
        square = batch_shape + self.event_shape + self.event_shape
        made = {n: self.__dict__[n].expand(square) for n in _NAMES if n in self.__dict__}
        return self._expanded(MultivariateNormal, _instance, batch_shape, loc=self.loc.expand(batch_shape + self.event_shape),
                              _unbroadcasted_scale_tril=self._unbroadcasted_scale_tril, **made)

    @lazy_property
    def scale_tril(self):
        """The covariance's Cholesky factor."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        return (self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT).expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self):
        """The covariance's inverse."""
        return F["cholesky_inverse"](self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self) -> Tensor:
        """loc."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """The covariance's diagonal."""
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """loc + L times standard normals."""
        eps = standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ eps.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """-(n log 2 pi + |L^-1 (x - loc)|^2) / 2 - log det L."""
        if self._validate_args:
            self._validate_sample(value)
        white = _whitened(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + white.pow(2).sum(-1)) - _half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        """n (1 + log 2 pi) / 2 + log det L."""
        return (0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + _half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)
