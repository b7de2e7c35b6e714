"""HierarchicalModelAverager: small groups of processes take their mean often, large ones seldom (Wang et al., 2020)."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...process_group import ProcessGroup, new_subgroups
from .averagers import ModelAverager, checked_warmup, warn_of_each_step
from .utils import average_parameters_or_parameter_groups

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(ModelAverager):
    """`period_group_size_dict` has, in ascending order, the size of the groups that take their mean every so many steps; the last is all processes.

    At a step that several periods divide, the group of the longest takes it. ValueError for an empty dict, a period below 1, or another last size.
    """

    def __init__(self, period_group_size_dict: dict[int, int] | None = None, warmup_steps: int = 0, process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        periods, sizes, world = list(period_group_size_dict), list(period_group_size_dict.values()), self.process_group.size()
        if periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if periods[-1] == 1:
            warn_of_each_step("When the maximum period in arg ``period_group_size_dict``")
        if sizes[-1] != world:
            raise ValueError(f"The last value in arg ``period_group_size_dict`` {sizes[-1]} must be equal to the size of arg ``process_group`` {world}.")
        self.period_process_group_dict = {period: self.process_group if size == world else new_subgroups(size, self.process_group)[0]
                                          for period, size in period_group_size_dict.items()}
        self.warmup_steps = checked_warmup(warmup_steps)

    def average_parameters(self, params: Iterable[Any]) -> None:
        group = next((g for period, g in reversed(self.period_process_group_dict.items()) if self.step % period == 0), None)
        if self.step >= self.warmup_steps and group is not None:
            average_parameters_or_parameter_groups(params, group)
        self.step += 1
