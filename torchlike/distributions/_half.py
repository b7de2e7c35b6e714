"""What the absolute values of distributions around 0 share."""
from __future__ import annotations

import math

from .._functions import torch as F
from .._tensor import Tensor
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class Half(TransformedDistribution):
    """|x| of a symmetric x around 0, made by `whole(0, scale)`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    whole: type

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(self.whole(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self):
        """That of x."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        """0."""
        return F["zeros_like"](self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        """That of x, doubled; -inf below 0."""
        if self._validate_args:
            self._validate_sample(value)
        return F["where"](value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        """2 cdf - 1."""
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile function."""
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        """That of x, less log 2."""
        return self.base_dist.entropy() - math.log(2)
