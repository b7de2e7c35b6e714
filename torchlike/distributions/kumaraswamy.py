"""The Kumaraswamy distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Tensor
from . import constraints
from .gumbel import _EULER
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all


def _moment(a, b, n):
    """E[x^n] = b B(1 + n / a, b)."""
    k = 1 + n / a
    return (b.log() + k.lgamma() + b.lgamma() - (k + b).lgamma()).exp()


class Kumaraswamy(TransformedDistribution):
    """cdf 1 - (1 - x^c1)^c0 on [0, 1]."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Tensor | float, concentration0: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(F["zeros_like"](self.concentration0), F["ones_like"](self.concentration0), validate_args=validate_args)
        parts = [PowerTransform(self.concentration0.reciprocal()), AffineTransform(1.0, -1.0), PowerTransform(self.concentration1.reciprocal())]
        super().__init__(base, parts, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1, new.concentration0 = self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        """E[x]."""
        return _moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        """((c1 - 1) / (c1 c0 - 1)) ** (1 / c1) where both are at least 1 and one is more, else NaN."""
        a, b = self.concentration1, self.concentration0
        return F["where"]((a < 1) | (b < 1), math.nan, ((a - 1).log() - (a * b - 1).log()) / a).exp()

    @property
    def variance(self) -> Tensor:
        """E[x^2] - E[x]^2."""
        return _moment(self.concentration1, self.concentration0, 2) - self.mean.pow(2)

    def entropy(self) -> Tensor:
        """1 - 1 / c0 + (1 - 1 / c1) H(c0) - log(c1 c0), H the harmonic number."""
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + _EULER
        return 1 - 1 / b + (1 - 1 / a) * harmonic - a.log() - b.log()
