"""Averagers: when the mean of the processes' parameters is taken. For post-local SGD (Lin et al., 2018)."""
from __future__ import annotations

import abc
import warnings
from collections.abc import Iterable
from typing import Any

from ...process_group import ProcessGroup, default_group
from .utils import average_parameters_or_parameter_groups

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(abc.ABC):
    """`step` counts the calls of `average_parameters(params)`, one for each step of training."""

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        self.process_group = default_group(process_group)
        self.step = 0

    @abc.abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Of a model's parameters or an optimizer's groups."""


def checked_warmup(steps: int) -> int:
    if steps < 0:
        raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
    return steps


def warn_of_each_step(which: str) -> None:
    warnings.warn(f"{which} is 1, no need to use model averaging because the communication cost of all-reducing parameters will be no less than the "
                  "cost of all-reducing gradients by DistributedDataParallel in the backward pass. Therefore, only DistributedDataParallel should be "
                  "used for this case.", stacklevel=3)


class PeriodicModelAverager(ModelAverager):
    """Takes the mean every `period` steps, the first time after `warmup_steps`."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        self.warmup_steps = checked_warmup(warmup_steps)
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warn_of_each_step("When period")
        self.period = period

    def average_parameters(self, params: Iterable[Any]) -> None:
        since = self.step - self.warmup_steps
        if since >= 0 and since % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
