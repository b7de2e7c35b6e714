"""The gamma distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..ops.queries import finfo
from . import constraints
from .distribution import ExponentialFamily
from .utils import broadcast_all, scalar_parameters


class Gamma(ExponentialFamily):
    """Gamma(concentration, rate): density rate^c x^(c-1) exp(-rate x) / Gamma(c)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(Size() if scalar_parameters(concentration, rate) else self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """concentration / rate."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        """(concentration - 1) / rate, at least 0."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        """concentration / rate^2."""
        return self.concentration / self.rate.pow(2)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(Gamma, _instance, batch_shape, concentration=self.concentration.expand(batch_shape), rate=self.rate.expand(batch_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Standard gamma samples over the rate."""
        shape = self._extended_shape(sample_shape)
        value = F["_standard_gamma"](self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # log_prob of an underflowed zero would be infinite
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        """c log rate + (c - 1) log x - rate x - log Gamma(c)."""
        value = F["as_tensor"](value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        return F["xlogy"](c, self.rate) + F["xlogy"](c - 1, value) - self.rate * value - c.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        """The regularized lower incomplete gamma function of rate x."""
        if self._validate_args:
            self._validate_sample(value)
        return F["igamma"](self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        """c - log rate + log Gamma(c) + (1 - c) digamma(c)."""
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1.0 - c) * c.digamma()

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log()
