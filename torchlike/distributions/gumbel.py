"""The Gumbel distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Tensor
from ..ops.queries import finfo
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, scalar_parameters

_EULER = 0.57721566490153286


class Gumbel(TransformedDistribution):
    """Gumbel(loc, scale): the limit of maxima."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        if scalar_parameters(loc, scale):
            base = Uniform(limits.tiny, 1 - limits.eps, validate_args=validate_args)
        else:
            base = Uniform(F["full_like"](self.loc, limits.tiny), F["full_like"](self.loc, 1 - limits.eps), validate_args=validate_args)
        parts = [ExpTransform().inv, AffineTransform(0, -F["ones_like"](self.scale)), ExpTransform().inv, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, parts, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value: Tensor) -> Tensor:
        """-z - exp(-z) - log scale."""
        if self._validate_args:
            self._validate_sample(value)
        z = (self.loc - value) / self.scale
        return z - z.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        """loc + Euler's constant * scale."""
        return self.loc + self.scale * _EULER

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """pi scale / sqrt 6."""
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        """pi^2 scale^2 / 6."""
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        """log scale + 1 + Euler's constant."""
        return self.scale.log() + (1 + _EULER)
