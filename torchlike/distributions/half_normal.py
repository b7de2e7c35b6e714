"""The half-normal distribution."""
from __future__ import annotations

import math

from .._public import FUNCTIONS as F
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class HalfNormal(TransformedDistribution):
    """|x| of a normal x of mean 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        """The distribution over a larger batch."""
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfNormal, _instance))

    @property
    def scale(self):
        """The normal's deviation."""
        return self.base_dist.scale

    @property
    def mean(self):
        """scale sqrt(2 / pi)."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self):
        """0."""
        return F["zeros_like"](self.scale)

    @property
    def variance(self):
        """scale^2 (1 - 2 / pi)."""
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value):
        """The normal's, doubled; -inf below 0."""
        if self._validate_args:
            self._validate_sample(value)
        return F["where"](value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value):
        """2 Phi - 1."""
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value):
        """The quantile function."""
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self):
        """The normal's, less log 2."""
        return self.base_dist.entropy() - math.log(2)
