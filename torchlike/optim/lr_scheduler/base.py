"""LRScheduler: what all schedules of learning rates have in common."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import Any
from weakref import ref

from ..._tensor import Tensor
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form is "
    "used instead of the new chainable form, where available. Please open an issue if you are unable to replicate your use "
    "case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_SEE = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def values_of(optimizer: Optimizer, key: str) -> list:
    """An option of every group; tensors are copied."""
    return [v.clone() if isinstance(v, Tensor) else v for v in (group[key] for group in optimizer.param_groups)]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Set an option; a tensor is filled, so that it stays the same tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(as_number(value))
    else:
        group[key] = value


def as_number(x: Any) -> Any:
    """x, or the item of a one-element tensor."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def per_group(name: str, optimizer: Optimizer, value: Any) -> list:
    """`value` for each group: a list of the right length, or the same for all."""
    n = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != n:
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
                f"param_groups has {n}."
            )
        return [v.clone() if isinstance(v, Tensor) else v for v in value]
    return [value.clone() if isinstance(value, Tensor) else value for _ in range(n)]


def check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """`get_lr` of a subclass gives the groups' next learning rates, from the present ones or from `last_epoch`.

    Raises TypeError for what is no Optimizer, KeyError when resuming (`last_epoch` >= 0) without 'initial_lr'.
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\n"
                    "This typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs: list = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Every attribute except the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[float]:
        """The learning rates that this scheduler last set."""
        return [lr.clone() if isinstance(lr, Tensor) else lr for lr in self._last_lr]

    def get_lr(self) -> list[float]:
        """The groups' learning rates for `last_epoch`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch (or to `epoch`, deprecated) and set the learning rates."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                    f"Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. {_SEE}",
                    UserWarning,
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                    "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                    f"to do this will result in PyTorch skipping the first value of the learning rate schedule. {_SEE}",
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_value(group, "lr", lr)
        self._last_lr: list = values_of(self.optimizer, "lr")

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _lrs(self, factor: float | None = None) -> list:
        """The present learning rates, times a factor if given."""
        lrs = values_of(self.optimizer, "lr")
        return lrs if factor is None else [lr * factor for lr in lrs]


def _note_steps(optimizer: Optimizer) -> None:
    """Makes `optimizer.step` note that it was called, for the warning about the wrong order."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    function, owner = step.__func__, ref(optimizer)

    @wraps(function)
    def noted(*args, **kwargs):
        self = owner()
        self._opt_called = True
        return function.__get__(self, self.__class__)(*args, **kwargs)

    noted._wrapped_by_lr_sched = True
    optimizer.step = noted


def callables_state(functions: Iterable) -> list:
    """What of user functions goes into a state dict: attributes of callable objects; plain functions are not saved."""
    return [None if isinstance(f, (types.FunctionType, partial)) else f.__dict__.copy() for f in functions]


def load_callables(functions: Sequence[Callable], states: Sequence) -> None:
    for f, s in zip(functions, states):
        if s is not None:
            f.__dict__.update(s)


class _LRScheduler(LRScheduler):
    """The older name of LRScheduler, for classes derived from it."""
