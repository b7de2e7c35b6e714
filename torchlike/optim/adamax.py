"""Adamax: Adam with the infinity norm (Kingma and Ba 2015, section 7.1)."""

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
    check_betas,
    check_learning_rate,
    check_not_negative,
    closure_loss,
)


def _rule(xp, p, g, state, numbers, flags):
    decays, maximize = flags
    lr, beta1, beta2, eps, decay, correction = numbers
    mean, largest = state
    if maximize:
        g = -g
    if decays:
        g = m.add(xp, g, p, decay)
    mean = m.lerp(xp, mean, g, 1 - beta1)
    largest = xp.maximum(m.mul(xp, largest, beta2), m.plus(xp, xp.abs(g), eps))
    return m.addcdiv(xp, p, mean, largest, -(lr / correction)), mean, largest


_ADAMAX = Rule("adamax", _rule)
_NAMES = ("exp_avg", "exp_inf")


class Adamax(Optimizer):
    """Steps along the mean of gradients over their decaying maximum. ValueError for options out of range."""

    _newer_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            create = zero_state(_NAMES, group["capturable"])
            beta1, beta2 = group["betas"]
            flags = (group["weight_decay"] != 0, group["maximize"])
            for t, params, grads, columns in self._updates(group, _NAMES, create):
                numbers = (group["lr"], beta1, beta2, group["eps"], group["weight_decay"], 1 - beta1**t)
                _ADAMAX(params, grads, columns, numbers, flags, group["differentiable"])
        return loss
