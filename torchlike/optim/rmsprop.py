"""RMSprop: steps divided by the root of a running mean of squared gradients (Hinton 2012; centred form: Graves 2013)."""

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
    decays, moves, centered, maximize = flags
    lr, alpha, eps, decay, momentum = numbers
    square = state[0]
    if maximize:
        g = -g
    if decays:
        g = m.add(xp, g, p, decay)
    square = m.addcmul(xp, m.mul(xp, square, alpha), g, g, 1 - alpha)
    made = [square]
    if centered:
        mean = m.lerp(xp, state[-1], g, 1 - alpha)
        root = m.sqrt(xp, m.addcmul(xp, square, mean, mean, -1.0))
    else:
        root = m.sqrt(xp, square)
    root = m.plus(xp, root, eps)
    if moves:
        buffer = m.addcdiv(xp, m.mul(xp, state[1], momentum), g, root, 1.0)
        made.append(buffer)
        p = m.add(xp, p, buffer, -lr)
    else:
        p = m.addcdiv(xp, p, g, root, -lr)
    return (p, *made, mean) if centered else (p, *made)


_RMSPROP = Rule("rmsprop", _rule)


class RMSprop(Optimizer):
    """p -= lr * g / (sqrt(mean of g^2) + eps), with momentum. ValueError for options out of range."""

    _newer_options = {"momentum": 0, "centered": False, "foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            moves, centered = group["momentum"] > 0, group["centered"]
            names = ("square_avg", *["momentum_buffer"] * moves, *["grad_avg"] * bool(centered))
            create = zero_state(names, group["capturable"])
            flags = (group["weight_decay"] != 0, moves, bool(centered), group["maximize"])
            numbers = (group["lr"], group["alpha"], group["eps"], group["weight_decay"], group["momentum"])
            for _, params, grads, columns in self._updates(group, names, create):
                _RMSPROP(params, grads, columns, numbers, flags, group["differentiable"])
        return loss
