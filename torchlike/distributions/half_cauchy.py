"""The half-Cauchy distribution."""
from __future__ import annotations

import math

from .._public import FUNCTIONS as F
from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class HalfCauchy(TransformedDistribution):
    """|x| of a Cauchy x around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The distribution over a larger batch."""
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfCauchy, _instance))

    @property
    def scale(self):
        """The width."""
        return self.base_dist.scale

    @property
    def mean(self):
        """Infinite."""
        return F["full"](self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def mode(self):
        """0."""
        return F["zeros_like"](self.scale)

    @property
    def variance(self):
        """Infinite."""
        return self.base_dist.variance

    def log_prob(self, value):
        """The Cauchy's, doubled; -inf below 0."""
        if self._validate_args:
            self._validate_sample(value)
        value = F["as_tensor"](value, dtype=self.scale.dtype, device=self.scale.device)
        return F["where"](value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value):
        """2 cdf - 1."""
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value):
        """The quantile function."""
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self):
        """The Cauchy's, less log 2."""
        return self.base_dist.entropy() - math.log(2)
