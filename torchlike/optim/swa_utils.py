"""Averages of a model's parameters along training: SWA (Izmailov et al. 2018) and exponential moving averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

import torchlike as torch

from .._tensor import Tensor
from ..autograd.grad_mode import no_grad
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype  # noqa: F401  (libraries take it from here)
from .lr_scheduler import LRScheduler
from .lr_scheduler.base import check_optimizer, per_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """A function that moves a list of averages towards the current values by 1 - decay."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], _: Any) -> None:
        for mean, now in zip(ema_param_list, current_param_list):
            if mean.is_floating_point() or mean.is_complex():
                mean.lerp_(now, 1 - decay)
            else:
                mean.copy_(mean * decay + now * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable:
    """A function that takes current values into a list of equal-weight averages of `num_averaged` values."""

    @no_grad()
    def swa_update(
        averaged_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Tensor | int
    ) -> None:
        weight = 1 / (num_averaged + 1)
        for mean, now in zip(averaged_param_list, current_param_list):
            if mean.is_floating_point() or mean.is_complex():
                mean.lerp_(now, weight.to(mean.dtype) if isinstance(weight, Tensor) else weight)
            else:
                mean.copy_(mean + (now - mean) * weight)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """decay * average + (1 - decay) * current"""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable:
    """The average of `num_averaged` values and the current one."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of `model` whose parameters are averages of those that `update_parameters` has seen.

    `avg_fn(average, current, n)` gives a new average; `multi_avg_fn(averages, currents, n)` writes into lists. Buffers
    are copied, or averaged with `use_buffers`.
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable | None = None,
        multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the current parameters of `model` into the averages."""

        def tensors(m: Module) -> list[Tensor]:
            return [t.detach() for t in (chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters())]

        means = tensors(self.module)
        now = [t.to(mean.device) for t, mean in zip(tensors(model), means)]
        means = means[:len(now)]
        n = self.n_averaged
        if n == 0:
            for mean, t in zip(means, now):
                mean.copy_(t)
        elif self.multi_avg_fn is not None or self.avg_fn is None:
            for where in _by_device_and_dtype(means):
                f = self.multi_avg_fn or get_swa_multi_avg_fn()
                f([means[i] for i in where], [now[i] for i in where], n.to(means[where[0]].device))
        else:
            for mean, t in zip(means, now):
                mean.copy_(self.avg_fn(mean, t, n.to(mean.device)))
        if not self.use_buffers:
            for mean, t in zip(self.module.buffers(), model.buffers(), strict=True):
                mean.detach().copy_(t.detach().to(mean.device))
        self.n_averaged += 1


def _by_device_and_dtype(tensors: list[Tensor]) -> list[list[int]]:
    found: dict = {}
    for i, t in enumerate(tensors):
        found.setdefault((t.device, t.dtype), []).append(i)
    return list(found.values())


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of batch normalization anew, as plain averages over `loader`."""
    norms = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not norms:
        return
    was_training = model.training
    for m in norms:
        m.reset_running_stats()
        m.momentum = None  # a cumulative average
    model.train()
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for m, momentum in norms.items():
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present learning rates to `swa_lr` in `anneal_epochs` epochs, along a cosine or a line, and then constant."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        for lr, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[float]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        lrs = []
        for group in self.optimizer.param_groups:
            lr, end = group["lr"], group["swa_lr"]
            start = end if before == 1 else (lr - before * end) / (1 - before)
            lrs.append(end * now + start * (1 - now))
        return lrs
