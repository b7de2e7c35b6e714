"""The half-Cauchy distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._functions import torch as F
from .._tensor import Tensor
from ._half import Half
from .cauchy import Cauchy


class HalfCauchy(Half):
    """|x| of a Cauchy x around 0."""

    whole = Cauchy

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self) -> Tensor:
        """Infinite."""
        return F["full"](self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        """The Cauchy's, doubled; -inf below 0."""
        if self._validate_args:  # a number is no sample
            self._validate_sample(value)
        return super().log_prob(F["as_tensor"](value, dtype=self.scale.dtype, device=self.scale.device))
