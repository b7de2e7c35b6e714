"""Student's t distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all, scalar_parameters, standard_normal


class StudentT(Distribution):
    """StudentT(df, loc, scale)."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Tensor | float, loc: Tensor | float = 0.0, scale: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(Size() if scalar_parameters(df, loc, scale) else self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        made = {n: getattr(self, n).expand(batch_shape) for n in ("df", "loc", "scale", "_chi2")}
        return self._expanded(StudentT, _instance, batch_shape, **made)

    @property
    def mean(self) -> Tensor:
        """loc where df > 1, else NaN."""
        return F["where"](self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale^2 df / (df - 2) where df > 2; infinite down to 1, then NaN."""
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return F["where"](self.df > 2, finite, F["where"](self.df > 1, math.inf, math.nan).to(finite.dtype))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Normals over the root of chi-squared numbers."""
        shape = self._extended_shape(sample_shape)
        x = standard_normal(shape, self.df.dtype, self.df.device)
        return self.loc + self.scale * (x * (self._chi2.rsample(sample_shape) / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        """-(df + 1) / 2 log(1 + z^2 / df) and what normalises it."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1)).lgamma()
        return -0.5 * (self.df + 1) * (z ** 2 / self.df).log1p() - norm

    def entropy(self) -> Tensor:
        """log scale + (df + 1) / 2 (digamma((df + 1) / 2) - digamma(df / 2)) + log(sqrt(df) B(df / 2, 1 / 2))."""
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta
