"""A scheduler: the share of zeros as a function of the epoch."""
from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier

__all__ = ["BaseScheduler"]


class BaseScheduler:
    """`step` gives the sparsifier's groups the `sparsity_level` that `get_sl`, which a subclass has, computes for the next epoch. `base_sl` are the levels
    at the beginning. TypeError for what is no sparsifier."""

    def __init__(self, sparsifier: BaseSparsifier, last_epoch: int = -1, verbose: bool = False) -> None:
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier")
        self.sparsifier, self.last_epoch, self.verbose = sparsifier, last_epoch, verbose
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        sparsifier.step = _counted(sparsifier)
        sparsifier._step_count = self._step_count = 0
        self._get_sl_called_within_step = False
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the sparsifier."""
        return {name: x for name, x in self.__dict__.items() if name != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the attributes of a `state_dict()`."""
        self.__dict__.update(state_dict)

    def get_last_sl(self) -> list[float]:
        """The levels that the last `step` set."""
        return self._last_sl

    def _warn_outside_of_step(self) -> None:
        if not self._get_sl_called_within_step:
            warnings.warn("To get the last sparsity level computed by the scheduler, please use `get_last_sl()`.", stacklevel=3)

    def get_sl(self) -> list[float]:
        """The levels of epoch `last_epoch`. NotImplementedError here."""
        self._warn_outside_of_step()
        raise NotImplementedError

    def print_sl(self, is_verbose: bool, group: Any, sl: float, epoch: int | None = None) -> None:
        """Prints a group's level where `is_verbose`."""
        if is_verbose:
            begin = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{begin} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch: int | None = None) -> None:
        """The next epoch's levels; masks may change again. Call it after the sparsifier's step: the other order warns."""
        if self._step_count == 1:
            if not hasattr(self.sparsifier.step, "_with_counter"):
                warnings.warn("Seems like `sparsifier.step()` has been overridden after sparsity scheduler initialization. Please, make sure to call "
                              "`sparsifier.step()` before `scheduler.step()`.", UserWarning, stacklevel=2)
            elif self.sparsifier._step_count < 1:
                warnings.warn("Detected call of `scheduler.step()` before `sparsifier.step()`. You have to make sure you run the sparsifier.step() BEFORE any "
                              "calls to the scheduler.step().", UserWarning, stacklevel=2)
        self._step_count += 1
        self._get_sl_called_within_step = True
        try:
            self.last_epoch += 1
            levels = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for i, (group, level) in enumerate(zip(self.sparsifier.groups, levels)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, i, level, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var: Any) -> list:
        """One value for each group. ValueError for a list of another length."""
        n = len(self.sparsifier.groups)
        if not isinstance(var, (list, tuple)):
            return [var] * n
        if len(var) != n:
            raise ValueError(f"Expected variable of length {n}, but got {len(var)}")
        return list(var)


def _counted(sparsifier: BaseSparsifier) -> Any:
    """The sparsifier's step, which counts its calls; it does not hold the sparsifier."""
    if hasattr(sparsifier.step, "_with_counter"):
        return sparsifier.step
    step, held = sparsifier.step.__func__, weakref.ref(sparsifier)

    @functools.wraps(step)
    def counting(*args: Any, **kwargs: Any) -> Any:
        held()._step_count += 1
        return step(held(), *args, **kwargs)
    counting._with_counter = True
    return counting
