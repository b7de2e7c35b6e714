"""Bernoulli samples made continuous, so that gradients flow."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from . import constraints
from ._binary import BinaryParameters
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs


class LogitRelaxedBernoulli(BinaryParameters, Distribution):
    """The logarithm of the odds of a RelaxedBernoulli."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Tensor | float, probs: Tensor | float | None = None, logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        self.temperature = temperature
        shape, = self._take(probs, logits)
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(LogitRelaxedBernoulli, _instance, batch_shape, temperature=self.temperature, **self._expanded_parameters(batch_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """(logit of uniform numbers + logits) / temperature."""
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(F["rand"](shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """log t + d - 2 log(1 + exp d), d = logits - t x."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        d = logits - value * self.temperature
        return self.temperature.log() + d - 2 * d.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """RelaxedBernoulli(temperature, probs): numbers of (0, 1), nearer to 0 and 1 the lower the temperature."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature: Tensor | float, probs: Tensor | float | None = None, logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
