"""The negative binomial distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from ..nn.functional import logsigmoid
from . import constraints
from ._binary import BinaryParameters
from .distribution import Distribution
from .gamma import Gamma
from .utils import lazy_property


class NegativeBinomial(BinaryParameters, Distribution):
    """NegativeBinomial(total_count, probs): successes of probability probs before total_count failures."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Tensor | float, probs: Tensor | float | None = None, logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        self.total_count, shape = self._take(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(NegativeBinomial, _instance, batch_shape, total_count=self.total_count.expand(batch_shape),
                              **self._expanded_parameters(batch_shape))

    @property
    def mean(self) -> Tensor:
        """total_count odds."""
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """floor((total_count - 1) odds), at least 0."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        """mean / (1 - p)."""
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self):
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Poisson counts of gamma rates."""
        with no_grad():
            return F["poisson"](self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """n log(1 - p) + x log p + log binom(n + x - 1, x)."""
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        unnormalized = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        norm = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return unnormalized - norm.masked_fill(n + value == 0.0, 0.0)
