"""The half-normal distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from .._tensor import Tensor
from ._half import Half
from .normal import Normal


class HalfNormal(Half):
    """|x| of a normal x of mean 0."""

    whole = Normal

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self) -> Tensor:
        """scale sqrt(2 / pi)."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        """scale^2 (1 - 2 / pi)."""
        return self.scale.pow(2) * (1 - 2 / math.pi)
