"""The Dirichlet distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from . import constraints
from .distribution import ExponentialFamily


class Dirichlet(ExponentialFamily):
    """Dirichlet(concentration) over the simplex of the last dimension."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        batch_shape = Size(batch_shape)
        return self._expanded(Dirichlet, _instance, batch_shape, concentration=self.concentration.expand(batch_shape + self.event_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Normalised gamma samples."""
        return F["_sample_dirichlet"](self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """sum (c - 1) log x + log Gamma(sum c) - sum log Gamma(c)."""
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        return F["xlogy"](c - 1.0, value).sum(-1) + c.sum(-1).lgamma() - c.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        """c / sum c."""
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """(c - 1) / (sum c - n) for c > 1; else a corner."""
        less = (self.concentration - 1).clamp(min=0.0)
        inside = less / less.sum(-1, True)
        corners = (self.concentration < 1).all(-1)
        indices = F["arange"](self.concentration.shape[-1], device=inside.device)
        at = (indices == inside.nan_to_num().argmax(-1, keepdim=True)).to(inside.dtype)
        return F["where"](corners.unsqueeze(-1), at, inside)

    @property
    def variance(self) -> Tensor:
        """c (s - c) / (s^2 (s + 1)), s = sum c."""
        c = self.concentration
        s = c.sum(-1, True)
        return c * (s - c) / (s.pow(2) * (s + 1))

    def entropy(self) -> Tensor:
        """log B(c) - (n - s) digamma(s) - sum (c - 1) digamma(c)."""
        c = self.concentration
        s = c.sum(-1)
        return c.lgamma().sum(-1) - s.lgamma() - (c.size(-1) - s) * s.digamma() - ((c - 1.0) * c.digamma()).sum(-1)

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
