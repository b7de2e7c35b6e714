"""Fisher's F distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..ops.queries import finfo
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, scalar_parameters


class FisherSnedecor(Distribution):
    """FisherSnedecor(df1, df2): the ratio of two chi-squared numbers, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)
        super().__init__(Size() if scalar_parameters(df1, df2) else self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        made = {n: getattr(self, n).expand(batch_shape) for n in ("df1", "df2", "_gamma1", "_gamma2")}
        return self._expanded(FisherSnedecor, _instance, batch_shape, **made)

    @property
    def mean(self) -> Tensor:
        """df2 / (df2 - 2) where df2 > 2, else NaN."""
        return F["where"](self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        """(df1 - 2) / df1 * df2 / (df2 + 2) where df1 > 2, else NaN."""
        return F["where"](self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        """2 df2^2 (df1 + df2 - 2) / (df1 (df2 - 2)^2 (df2 - 4)) where df2 > 4, else NaN."""
        a, b = self.df1, self.df2
        return F["where"](b > 4, 2 * b.pow(2) * (a + b - 2) / (a * (b - 2).pow(2) * (b - 4)), math.nan)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """The ratio of two gamma samples."""
        above, below = self._gamma1.rsample(sample_shape).view(self._extended_shape(sample_shape)), self._gamma2.rsample(sample_shape)
        tiny = finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        """The density's logarithm."""
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        return (a + b).lgamma() - a.lgamma() - b.lgamma() + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
