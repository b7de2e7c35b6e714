"""One-hot categorical distributions."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from . import constraints
from ._over_categorical import OverCategorical
from .categorical import Categorical
from .distribution import Distribution


class OneHotCategorical(OverCategorical, Distribution):
    """A Categorical whose samples are one-hot vectors."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        batch_shape = Size(batch_shape)
        return self._expanded(OneHotCategorical, _instance, batch_shape, _categorical=self._categorical.expand(batch_shape))

    @property
    def mean(self) -> Tensor:
        """p."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The likeliest class."""
        return self._one_hot(self.probs.argmax(-1)).to(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        """p (1 - p)."""
        return self.probs * (1 - self.probs)

    def _one_hot(self, index):
        return (index.unsqueeze(-1) == F["arange"](self._categorical._num_events, device=index.device)).long()

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """One-hot vectors, of the parameter's dtype."""
        return self._one_hot(self._categorical.sample(sample_shape)).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """The log-probability of the class."""
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        """The categorical's."""
        return self._categorical.entropy()

    def enumerate_support(self, expand=True) -> Tensor:
        """All one-hot vectors."""
        n = self.event_shape[0]
        values = F["eye"](n, dtype=self._param.dtype, device=self._param.device).view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + self.batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Samples are one-hot; gradients flow to the probabilities as if those were the sample."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """sample + (probs - probs.detach())."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
