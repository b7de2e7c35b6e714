"""The Laplace distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._tensor import Size, Tensor
from ..ops.queries import finfo
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, scalar_parameters


class Laplace(Distribution):
    """Laplace(loc, scale): density exp(-|x - loc| / scale) / (2 scale)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(Size() if scalar_parameters(loc, scale) else self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """loc."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        """2 scale^2."""
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        """sqrt(2) scale."""
        return 2 ** 0.5 * self.scale

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return self._expanded(Laplace, _instance, batch_shape, loc=self.loc.expand(batch_shape), scale=self.scale.expand(batch_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """The inverse cdf of uniform numbers of (-1, 1)."""
        u = self.loc.detach().new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        """-log(2 scale) - |x - loc| / scale."""
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        """1/2 - sign(x - loc) expm1(-|x - loc| / scale) / 2."""
        if self._validate_args:
            self._validate_sample(value)
        d = value - self.loc
        return 0.5 - 0.5 * d.sign() * (-d.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile function."""
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        """1 + log(2 scale)."""
        return 1 + (2 * self.scale).log()
