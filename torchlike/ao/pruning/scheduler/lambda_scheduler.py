"""A share of zeros by a function of the epoch."""
from __future__ import annotations

from collections.abc import Callable

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler

__all__ = ["LambdaSL"]


class LambdaSL(BaseScheduler):
    """Each group's level at the beginning times `sl_lambda(epoch)`: one function, or one for each group (ValueError for another number)."""

    def __init__(self, sparsifier: BaseSparsifier, sl_lambda: Callable[[int], float] | list[Callable[[int], float]], last_epoch: int = -1,
                 verbose: bool = False) -> None:
        self.sparsifier, n = sparsifier, len(sparsifier.groups)
        if isinstance(sl_lambda, (list, tuple)) and len(sl_lambda) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(sl_lambda)}")
        self.sl_lambdas = self._make_sure_a_list(sl_lambda)
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        """The levels of epoch `last_epoch`."""
        self._warn_outside_of_step()
        return [level * f(self.last_epoch) for f, level in zip(self.sl_lambdas, self.base_sl)]
