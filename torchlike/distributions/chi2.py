"""The chi-squared distribution."""
from __future__ import annotations

from collections.abc import Sequence

from .._tensor import Tensor
from . import constraints
from .gamma import Gamma


class Chi2(Gamma):
    """Chi2(df) is Gamma(df / 2, 1 / 2)."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance=None):
        """The distribution over a larger batch."""
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))

    @property
    def df(self):
        """Degrees of freedom."""
        return self.concentration * 2
