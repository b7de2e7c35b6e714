"""The LKJ distribution of Cholesky factors of correlation matrices."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Size, Tensor
from ..autograd.grad_mode import no_grad
from ..ops.queries import finfo
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all


class LKJCholesky(Distribution):
    """LKJCholesky(dim, concentration): L with density proportional to det(L L^T)^(concentration - 1) over correlation matrices."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration, = broadcast_all(concentration)
        row = F["arange"](dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        row = F["cat"]([row.new_zeros(1), row])
        self._beta = Beta(row + 0.5, (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * row)
        super().__init__(self.concentration.size(), (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        batch_shape = Size(batch_shape)
        return self._expanded(LKJCholesky, _instance, batch_shape, dim=self.dim, concentration=self.concentration.expand(batch_shape),
                              _beta=self._beta.expand(batch_shape + (self.dim,)))

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """The onion method: row i is a direction on a sphere, its squared length beta distributed; the rest is on the diagonal."""
        with no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1).sqrt()
            normal = F["randn"](self._extended_shape(sample_shape), dtype=length.dtype, device=length.device).tril(-1)
            norm = normal.norm(dim=-1, keepdim=True)
            below = length * F["where"](norm == 0, 0.0, normal / norm)  # the first row has nothing below the diagonal
            rest = (1 - below.pow(2).sum(-1)).clamp(min=finfo(below.dtype).tiny).sqrt()
            return below + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """The sum of (2 (concentration - 1) + dim - i) log L_ii over rows i > 1, less the normalizer (LKJ 2009, p. 1999)."""
        if self._validate_args:
            self._validate_sample(value)
        n = self.dim - 1
        row = F["arange"](2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        alpha = self.concentration + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + F["mvlgamma"](alpha - 0.5, p=n) - n * alpha.lgamma()
        return (power * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1) - normalizer
