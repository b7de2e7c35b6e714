"""The exponential distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._tensor import Size, Tensor
from . import constraints
from .distribution import ExponentialFamily
from .utils import broadcast_all, scalar_parameters


class Exponential(ExponentialFamily):
    """Exponential(rate): density rate exp(-rate x) for x >= 0."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.rate, = broadcast_all(rate)
        super().__init__(Size() if scalar_parameters(rate) else self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """1 / rate."""
        return self.rate.reciprocal()

    stddev = mean

    @property
    def mode(self) -> Tensor:
        """0."""
        return self.rate.new_zeros(self.rate.shape)

    @property
    def variance(self) -> Tensor:
        """1 / rate^2."""
        return self.rate.pow(-2)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(Exponential, _instance, batch_shape, rate=self.rate.expand(batch_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Standard exponential numbers over the rate."""
        return self.rate.detach().new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """log rate - rate x."""
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        """1 - exp(-rate x)."""
        if self._validate_args:
            self._validate_sample(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        """-log(1 - p) / rate."""
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        """1 - log rate."""
        return 1.0 - self.rate.log()

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -(-x).log()
