"""The Bernoulli distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from ._binary import BinaryParameters
from .distribution import ExponentialFamily
from .utils import broadcast_all, softplus


class Bernoulli(BinaryParameters, ExponentialFamily):
    """Bernoulli(probs) or Bernoulli(logits=): 1 with probability probs, else 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Tensor | float | None = None, logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        shape, = self._take(probs, logits)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """probs."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The likelier value; NaN at 1/2."""
        p = self.probs
        return F["where"](p == 0.5, float("nan"), (p >= 0.5).to(p.dtype))

    @property
    def variance(self) -> Tensor:
        """p (1 - p)."""
        return self.probs * (1 - self.probs)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(Bernoulli, _instance, batch_shape, **self._expanded_parameters(batch_shape))

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Zeros and ones."""
        with no_grad():
            return F["bernoulli"](self.probs.expand(self._extended_shape(sample_shape)))

    def _cross_entropy(self, logits, value):
        return softplus(logits) - logits * value

    def log_prob(self, value: Tensor) -> Tensor:
        """x log p + (1 - x) log(1 - p)."""
        if self._validate_args:
            self._validate_sample(value)
        return -self._cross_entropy(*broadcast_all(self.logits, value))

    def entropy(self) -> Tensor:
        """-p log p - (1 - p) log(1 - p)."""
        return self._cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand=True) -> Tensor:
        """0 and 1."""
        values = F["arange"](2, dtype=self._param.dtype, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    @property
    def _natural_params(self):
        return (self.probs.logit(),)

    def _log_normalizer(self, x):
        return x.exp().log1p()
