"""Adadelta: Adagrad over a window, with steps in units of the parameters (Zeiler 2012)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from . import _maths as m
from ._rules import Rule, zero_state
from .optimizer import (
    Optimizer,
    ParamsT,
    _use_grad_for_differentiable,
    check_learning_rate,
    check_not_negative,
    closure_loss,
)


def _rule(xp, p, g, state, numbers, flags):
    decays, maximize = flags
    lr, rho, eps, decay = numbers
    square, moved = state
    if maximize:
        g = -g
    if decays:
        g = m.add(xp, g, p, decay)
    square = m.addcmul(xp, m.mul(xp, square, rho), g, g, 1 - rho)
    delta = m.sqrt(xp, m.plus(xp, moved, eps)) / m.sqrt(xp, m.plus(xp, square, eps)) * g
    moved = m.addcmul(xp, m.mul(xp, moved, rho), delta, delta, 1 - rho)
    return m.add(xp, p, delta, -lr), square, moved


_ADADELTA = Rule("adadelta", _rule)
_NAMES = ("square_avg", "acc_delta")


class Adadelta(Optimizer):
    """p -= lr * g * sqrt(mean of steps^2 + eps) / sqrt(mean of g^2 + eps). ValueError for options out of range."""

    _newer_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(epsilon=eps, weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "rho": rho,
                "eps": eps,
                "weight_decay": weight_decay,
                "maximize": maximize,
                "capturable": capturable,
                "foreach": foreach,
                "differentiable": differentiable,
            },
        )

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            create = zero_state(_NAMES, group["capturable"])
            flags = (group["weight_decay"] != 0, group["maximize"])
            numbers = (group["lr"], group["rho"], group["eps"], group["weight_decay"])
            for _, params, grads, columns in self._updates(group, _NAMES, create):
                _ADADELTA(params, grads, columns, numbers, flags, group["differentiable"])
        return loss
