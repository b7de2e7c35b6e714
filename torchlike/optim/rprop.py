"""Rprop: step sizes that grow while the sign of the gradient stays and shrink when it turns (Riedmiller and Braun 1993)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..ops.basic import sign_of
from . import _maths as m
from ._rules import Rule, step_tensor, zeros
from .optimizer import Optimizer, ParamsT, _use_grad_for_differentiable, check_learning_rate, closure_loss


def _rule(xp, p, g, state, numbers, flags):
    shrink, grow, smallest, largest = (m.number(xp, x, p.dtype) for x in numbers)
    before, size = state
    if flags[0]:
        g = -g
    turn = g * before
    factor = m.like(xp, xp.where(turn > 0, grow, xp.where(turn < 0, shrink, 1.0)), p)
    size = m.like(xp, xp.clip(size * factor, smallest, largest), p)
    g = xp.where(turn < 0, xp.zeros((), g.dtype), g)
    return m.addcmul(xp, p, sign_of(xp, g), size, -1.0), g, size


_RPROP = Rule("rprop", _rule)
_NAMES = ("prev", "step_size")


class Rprop(Optimizer):
    """Steps of one size per element along the gradient's sign. ValueError unless 0 < etas[0] < 1 < etas[1]."""

    _newer_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr,
                "etas": etas,
                "step_sizes": step_sizes,
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

            def create(s, p, capturable=group["capturable"], lr=float(group["lr"])):
                s["step"], s["prev"] = step_tensor(0.0, p.device if capturable else None), zeros(p)
                s["step_size"] = zeros(p, complex(lr, lr) if p.is_complex() else lr)

            numbers = (*group["etas"], *group["step_sizes"])
            for _, params, grads, columns in self._updates(group, _NAMES, create):
                _RPROP(params, grads, columns, numbers, (group["maximize"],), group["differentiable"])
        return loss
