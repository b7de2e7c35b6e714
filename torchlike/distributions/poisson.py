"""The Poisson distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import ExponentialFamily
from .utils import broadcast_all, scalar_parameters


class Poisson(ExponentialFamily):
    """Poisson(rate): counts."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.rate, = broadcast_all(rate)
        super().__init__(Size() if scalar_parameters(rate) else self.rate.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(Poisson, _instance, batch_shape, rate=self.rate.expand(batch_shape))

    @property
    def mean(self) -> Tensor:
        """rate."""
        return self.rate

    variance = mean

    @property
    def mode(self) -> Tensor:
        """rate, rounded down."""
        return self.rate.floor()

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Counts, as floating-point numbers."""
        with no_grad():
            return F["poisson"](self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """x log rate - rate - log x!."""
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return F["xlogy"](value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (self.rate.log(),)

    def _log_normalizer(self, x):
        return x.exp()
