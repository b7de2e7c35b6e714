"""ASGD: stochastic gradient descent with averaged parameters (Polyak and Juditsky 1992)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from . import _maths as m
from ._rules import Rule, by_number, set_numbers, step_tensor, zeros
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
    lambd, decay, eta, mu = numbers
    mean = state[0]
    if maximize:
        g = -g
    if decays:
        g = m.add(xp, g, p, decay)
    p = m.add(xp, m.mul(xp, p, 1 - lambd * eta), g, -eta)
    return p, xp.where(xp.asarray(mu) == 1, p, mean + m.mul(xp, p - mean, mu))


_ASGD = Rule("asgd", _rule)


class ASGD(Optimizer):
    """Gradient descent with a decaying rate `eta`; `state[p]['ax']` is the average from step `t0` on."""

    _newer_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(weight_decay=weight_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "lambd": lambd,
                "alpha": alpha,
                "t0": t0,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state.get(p) or {}
                for name in {"eta", "mu"} & s.keys():
                    if not isinstance(s[name], Tensor):
                        s[name] = step_tensor(float(s[name]))

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            lr, lambd, decay = group["lr"], group["lambd"], group["weight_decay"]

            def create(s, p, capturable=group["capturable"], lr=lr):
                device = p.device if capturable else None
                s["step"], s["eta"], s["mu"] = (
                    step_tensor(0.0, device),
                    step_tensor(float(lr), device),
                    step_tensor(1.0, device),
                )
                s["ax"] = zeros(p)

            flags = (decay != 0, group["maximize"])
            for t, params, grads, (etas, mus, means) in self._updates(group, ("eta", "mu", "ax"), create):
                for eta, part in by_number(etas, params, grads, etas, mus, means):
                    for mu, (ps, gs, es, ms, axs) in by_number(part[3], *part):
                        _ASGD(ps, gs, (axs,), (lambd, decay, eta, mu), flags, group["differentiable"])
                        set_numbers(es, float(lr) / (1 + lambd * float(lr) * t) ** group["alpha"])
                        set_numbers(ms, 1 / max(1, t - group["t0"]))
        return loss
