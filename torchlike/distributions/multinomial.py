"""The multinomial distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from ._over_categorical import OverCategorical
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all


class Multinomial(OverCategorical, Distribution):
    """Multinomial(total_count, probs): how often each class is drawn."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        batch_shape = Size(batch_shape)
        return self._expanded(Multinomial, _instance, batch_shape, total_count=self.total_count, _categorical=self._categorical.expand(batch_shape),
                              _binomial=self._binomial.expand(batch_shape + self.event_shape))

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        """Counts that sum to at most total_count."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        """n p."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """n p (1 - p)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Counts of total_count classes."""
        shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample(Size((self.total_count,)) + shape)
            drawn = drawn.permute(*range(1, drawn.dim()), 0)
            counts = F["zeros"](self._extended_shape(shape), dtype=self.probs.dtype, device=self.probs.device)
            return counts.scatter_add(-1, drawn, F["ones_like"](drawn, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """log n! - sum log x! + sum x log p."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0.0)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """n times the categorical's entropy, less log n!, plus the expectations of log x!."""
        n = F["tensor"](float(self.total_count))
        support = self._binomial.enumerate_support(expand=False)[1:]
        weighted = (self._binomial.log_prob(support).exp() * (support + 1).lgamma()).sum((0, -1))
        return n * self._categorical.entropy() - (n + 1).lgamma() + weighted
