"""The generalized Pareto distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, scalar_parameters


class GeneralizedPareto(Distribution):
    """GeneralizedPareto(loc, scale, concentration): P(X > x) = (1 + c z)^(-1 / c), z = (x - loc) / scale; exp(-z) for c = 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(Size() if scalar_parameters(loc, scale, concentration) else self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        made = {n: getattr(self, n).expand(batch_shape) for n in self.arg_constraints}
        return self._expanded(GeneralizedPareto, _instance, batch_shape, **made)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """From loc to infinity, or to loc - scale / c for c < 0."""
        return constraints.interval(self.loc, F["where"](self.concentration < 0, self.loc - self.scale / self.concentration, math.inf))

    def _shape(self):
        """Where c counts as 0; and c, 1 there."""
        zero = F["isclose"](self.concentration, F["zeros_like"](self.concentration))
        return zero, F["where"](zero, 1.0, self.concentration)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """icdf of uniform numbers."""
        return self.icdf(F["rand"](self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        """-log scale - (1 + 1 / c) log(1 + c z)."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._shape()
        power = 1 / c + 1 + F["zeros_like"](z)
        return -self.scale.log() - F["where"](zero, z, F["where"](power == 0, power, power * (c * z).log1p()))

    def log_survival_function(self, value):
        """log P(X > x)."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._shape()
        return F["where"](zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value):
        """log P(X <= x)."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        """P(X <= x)."""
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """loc + scale ((1 - u)^-c - 1) / c."""
        zero, c = self._shape()
        log_left = (-value).log1p()
        return F["where"](zero, self.loc - self.scale * log_left, self.loc + self.scale / c * (-c * log_left).expm1())

    @property
    def mean(self) -> Tensor:
        """loc + scale / (1 - c) where c < 1, else NaN."""
        finite = self.concentration < 1
        return F["where"](finite, self.loc + self.scale / (1 - F["where"](finite, self.concentration, 0.5)), math.nan)

    @property
    def variance(self) -> Tensor:
        """scale^2 / ((1 - c)^2 (1 - 2c)) where c < 1/2, else NaN."""
        finite = self.concentration < 0.5
        c = F["where"](finite, self.concentration, 0.25)
        return F["where"](finite, self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c)), math.nan)

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    def entropy(self) -> Tensor:
        """log scale + c + 1."""
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)
