"""The normal distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import ExponentialFamily
from .utils import broadcast_all, scalar_parameters, standard_normal

_HALF_LOG_2PI = math.log(math.sqrt(2 * math.pi))


class Normal(ExponentialFamily):
    """Normal(loc, scale): mean loc, standard deviation scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(Size() if scalar_parameters(loc, scale) else self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """loc."""
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        """scale."""
        return self.scale

    @property
    def variance(self) -> Tensor:
        """scale squared."""
        return self.stddev.pow(2)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(Normal, _instance, batch_shape, loc=self.loc.expand(batch_shape), scale=self.scale.expand(batch_shape))

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Samples without gradients."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            if shape == self.loc.shape:
                return F["normal"](self.loc, self.scale)
            return F["normal"](self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """loc + scale * standard normals."""
        eps = standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """-(x - loc)^2 / (2 scale^2) - log scale - log sqrt(2 pi)."""
        if self._validate_args:
            self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.scale ** 2) - self.scale.log() - _HALF_LOG_2PI

    def cdf(self, value: Tensor) -> Tensor:
        """(1 + erf(z / sqrt 2)) / 2."""
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + F["erf"]((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile function."""
        return self.loc + self.scale * F["erfinv"](2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        """1/2 + log sqrt(2 pi) + log scale."""
        return 0.5 + _HALF_LOG_2PI + self.scale.log()

    @property
    def _natural_params(self):
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log()
