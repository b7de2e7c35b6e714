"""The continuous Bernoulli distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from ._binary import BinaryParameters
from .distribution import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, softplus


class ContinuousBernoulli(BinaryParameters, ExponentialFamily):
    """ContinuousBernoulli(probs) or logits=: density C(p) p^x (1 - p)^(1 - x) on [0, 1] (Loaiza-Ganem and Cunningham, 2019).

    The formulas cancel near p = 1/2; between the two `lims` series in p - 1/2 take their place.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Tensor | float | None = None, logits: Tensor | float | None = None, lims: tuple[float, float] = (0.499, 0.501),
                 validate_args: bool | None = None) -> None:
        shape, = self._take(probs, logits)
        if probs is not None:
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(ContinuousBernoulli, _instance, batch_shape, _lims=self._lims, **self._expanded_parameters(batch_shape))

    @lazy_property
    def probs(self):
        """The parameter p, which is not a probability."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _away(self):
        """Where p is away from 1/2; and p there, a harmless number elsewhere."""
        away = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return away, F["where"](away, self.probs, self._lims[0])

    def _log_norm(self):
        """log C(p)."""
        away, p = self._away()
        ends = (-p).log1p() - p.log()
        x = (self.probs - 0.5).pow(2)
        return F["where"](away, ends.abs().log() - (1 - 2 * p).abs().log(), math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        """p / (2p - 1) + 1 / (log(1 - p) - log p)."""
        away, p = self._away()
        x = self.probs - 0.5
        return F["where"](away, p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()), 0.5 + (1 / 3 + 16 / 45 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        """p (p - 1) / (1 - 2p)^2 + 1 / (log(1 - p) - log p)^2."""
        away, p = self._away()
        x = (self.probs - 0.5).pow(2)
        exact = p * (p - 1) / (1 - 2 * p).pow(2) + 1 / ((-p).log1p() - p.log()).pow(2)
        return F["where"](away, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """icdf of uniform numbers, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """icdf of uniform numbers."""
        return self.icdf(F["rand"](self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        """x log p + (1 - x) log(1 - p) + log C(p)."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return logits * value - softplus(logits) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        """(p^x (1 - p)^(1 - x) + p - 1) / (2p - 1), 0 below 0 and 1 above 1."""
        if self._validate_args:
            self._validate_sample(value)
        away, p = self._away()
        inside = F["where"](away, (p.pow(value) * (1 - p).pow(1 - value) + p - 1) / (2 * p - 1), value)
        return F["where"](value <= 0, 0.0, F["where"](value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        """(log(1 - p + u (2p - 1)) - log(1 - p)) / (log p - log(1 - p))."""
        away, p = self._away()
        low = (-p).log1p()
        return F["where"](away, ((value * (2 * p - 1) - p).log1p() - low) / (p.log() - low), value)

    def entropy(self) -> Tensor:
        """-E[log density]."""
        low = (-self.probs).log1p()
        return self.mean * (low - self.probs.log()) - self._log_norm() - low

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        away = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = F["where"](away, x, self._lims[0] - 0.5)
        return F["where"](away, cut.expm1().abs().log() - cut.abs().log(), 0.5 * x + x.pow(2) / 24 - x.pow(4) / 2880)
