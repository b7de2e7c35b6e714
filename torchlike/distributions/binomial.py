"""The binomial distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from ._binary import BinaryParameters
from .distribution import Distribution
from .utils import softplus


class Binomial(BinaryParameters, Distribution):
    """Binomial(total_count, probs): successes of total_count trials."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count: Tensor | float = 1, probs: Tensor | float | None = None, logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        self.total_count, shape = self._take(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(Binomial, _instance, batch_shape, total_count=self.total_count.expand(batch_shape),
                              **self._expanded_parameters(batch_shape))

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """0 to total_count."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """n p."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        """floor((n + 1) p), at most n."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        """n p (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Counts, as floating-point numbers."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return F["binomial"](self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """log binom(n, x) + x logits - n softplus(logits)."""
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        binom = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return binom + value * logits - n * softplus(logits)

    def entropy(self) -> Tensor:
        """-sum p(x) log p(x) over the support, where all counts are equal."""
        n = int(self.total_count.max())
        if not self.total_count.min() == n:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True) -> Tensor:
        """0 to total_count, where all counts are equal."""
        n = int(self.total_count.max())
        if not self.total_count.min() == n:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = F["arange"](1 + n, dtype=self._param.dtype, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
