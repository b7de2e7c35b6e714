"""A share of zeros that grows fast at the beginning (Zhu and Gupta, 2017: To prune, or not to prune)."""
from __future__ import annotations

from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler

__all__ = ["CubicSL"]


class CubicSL(BaseScheduler):
    """From `init_sl` at epoch `init_t` to each group's level at the beginning, s: s + (init_sl - s) (1 - (t - init_t) / (delta_t total_t))^3 in epoch t, never
    outside of the two. `initially_zero`: 0 before `init_t`. Each is one value, or a list of one for each group."""

    def __init__(self, sparsifier: BaseSparsifier, init_sl: Any = 0.0, init_t: Any = 0, delta_t: Any = 10, total_t: Any = 100, initially_zero: Any = False,
                 last_epoch: int = -1, verbose: bool = False) -> None:
        self.sparsifier = sparsifier
        self.init_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero = map(self._make_sure_a_list, (init_sl, init_t, delta_t, total_t, initially_zero))
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(s_0: float, s_f: float, t: int, t_0: int, dt: int, n: int, initially_zero: bool = False) -> float:
        """The level at step t, from s_0 at t_0 to s_f after n updates, dt steps apart."""
        if initially_zero and t < t_0:
            return 0
        return max(s_0, min(s_f, s_f + (s_0 - s_f) * (1.0 - (t - t_0) / (dt * n)) ** 3))

    def get_sl(self) -> list[float]:
        """The levels of epoch `last_epoch`."""
        self._warn_outside_of_step()
        return [self.sparsity_compute_fn(s_0, s_f, self.last_epoch, t_0, dt, n, zero) for s_0, s_f, t_0, dt, n, zero in zip(
            self.init_sl, self.base_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero)]
