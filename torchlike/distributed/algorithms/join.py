"""Join: processes that run out of inputs early go on taking part in the collectives of those that have not.

Before its collectives an iteration of a Joinable tells the context that it runs. A process that has left its loop answers
these rounds, each with the `main_hook` of every Joinable, until nobody runs any more.
"""
from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ..._functions import torch
from ..._tensor import Tensor
from ..collectives import all_reduce
from ..process_group import ReduceOp, get_rank


class JoinHook:
    """What a process that has no more inputs does for one Joinable."""

    def main_hook(self) -> None:
        """The collectives of one iteration."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Once, when all processes have joined."""


class _Config(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool


class Joinable(ABC):
    """Something whose iterations consist of collectives, as DistributedDataParallel."""

    _join_config = _Config(False, False, False)

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What to do in processes that have joined."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Where the context's own collectives have their tensors."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of the collectives."""


class Join:
    """A context for loops whose lengths differ between processes.

    `throw_on_early_termination`: all processes raise RuntimeError as soon as one has no more inputs.
    """

    def __init__(self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = {id(j.join_process_group) for j in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables, self._enable, self._throw = joinables, enable, throw_on_early_termination
        self._hooks = [j.join_hook(**kwargs) for j in joinables]
        self._group, self._device = joinables[0].join_process_group, joinables[0].join_device

    def __enter__(self) -> None:
        for i, joinable in enumerate(self._joinables):
            joinable._join_config = _Config(self._enable, self._throw, i == 0)

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        for joinable in self._joinables:
            joinable._join_config = _Config(False, False, False)
        if not self._enable or kind is not None:
            return
        last, rounds = True, 0
        while _running(self._group, self._device, mine=False):
            if self._throw:
                _told_to_stop(self._group, self._device, stop=True)
                raise RuntimeError(f"Rank {get_rank(self._group)} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            last, rounds = False, rounds + 1
            if rounds == 1000:
                warnings.warn(f"Rank {get_rank(self._group)} has joined 1000 iterations ago; the inputs of the processes are very uneven.", stacklevel=2)
        for hook in self._hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Told by a Joinable before an iteration's collectives; only the first of a context asks the other processes."""
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return
        group, device = joinable.join_process_group, joinable.join_device
        _running(group, device, mine=True)
        if config.throw_on_early_termination and _told_to_stop(group, device, stop=False):
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")


def _running(group: Any, device: Any, mine: bool) -> int:
    """How many processes still have inputs."""
    count: Tensor = (torch.ones if mine else torch.zeros)(1, device=device)
    all_reduce(count, group=group)
    return int(count)


def _told_to_stop(group: Any, device: Any, stop: bool) -> bool:
    flag: Tensor = (torch.ones if stop else torch.zeros)(1, device=device)
    all_reduce(flag, ReduceOp.MAX, group)
    return bool(flag)
