"""RAdam: Adam whose first steps wait until the variance can be estimated (Liu et al. 2020)."""

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
    decays, decoupled, maximize = flags
    lr, beta1, beta2, eps, decay, correction1, root2, rectification = numbers
    mean, square = state
    if maximize:
        g = -g
    if decays:
        if decoupled:
            p = m.mul(xp, p, 1 - lr * decay)
        else:
            g = m.add(xp, g, p, decay)
    mean = m.lerp(xp, mean, g, 1 - beta1)
    square = m.addcmul(xp, m.mul(xp, square, beta2), g, g, 1 - beta2)
    along = m.mul(xp, m.div(xp, mean, correction1), lr)
    adaptive = m.mul(xp, along * m.over(xp, root2, m.plus(xp, m.sqrt(xp, square), eps)), rectification)
    # a choice by data, so that the step at which rectification begins is no new program
    return m.add(xp, p, xp.where(xp.asarray(rectification) > 0, adaptive, along), -1.0), mean, square


_RADAM = Rule("radam", _rule)
_NAMES = ("exp_avg", "exp_avg_sq")


def rectification(t: float, beta2: float) -> float:
    """The factor r_t of the paper at step t; 0 while the variance is intractable."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * t * beta2**t / (1 - beta2**t)
    if length <= 5.0:
        return 0.0
    return ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5


class RAdam(Optimizer):
    """Adam with rectified variance. ValueError for options out of range."""

    _newer_options = {"foreach": None, "maximize": False, "differentiable": False, "decoupled_weight_decay": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            create = zero_state(_NAMES, group["capturable"])
            (beta1, beta2), decay = group["betas"], group["weight_decay"]
            flags = (decay != 0, group["decoupled_weight_decay"], group["maximize"])
            for t, params, grads, columns in self._updates(group, _NAMES, create):
                numbers = (
                    group["lr"],
                    beta1,
                    beta2,
                    group["eps"],
                    decay,
                    1 - beta1**t,
                    (1 - beta2**t) ** 0.5,
                    rectification(t, beta2),
                )
                _RADAM(params, grads, columns, numbers, flags, group["differentiable"])
        return loss
