"""NAdam: Adam with Nesterov momentum (Dozat 2016)."""

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
    check_betas,
    check_learning_rate,
    check_not_negative,
    closure_loss,
)


def _rule(xp, p, g, state, numbers, flags):
    decays, decoupled, maximize = flags
    lr, beta1, beta2, eps, decay, correction2, mu, mu_next, product = numbers
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
    scale = m.plus(xp, m.sqrt(xp, m.div(xp, square, correction2)), eps)
    p = m.addcdiv(xp, p, g, scale, -lr * (1.0 - mu) / (1.0 - product))
    return m.addcdiv(xp, p, mean, scale, -lr * mu_next / (1.0 - product * mu_next)), mean, square


_NADAM = Rule("nadam", _rule)
_NAMES = ("exp_avg", "exp_avg_sq")


class NAdam(Optimizer):
    """Adam that looks ahead along its momentum, whose schedule `momentum_decay` sets. ValueError for options out of range."""

    _newer_options = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False, "decoupled_weight_decay": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
            },
        )

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:

            def create(s, p, capturable=group["capturable"]):
                device = p.device if capturable else None
                s["step"], s["mu_product"] = step_tensor(0.0, device), step_tensor(1.0, device)
                for name in _NAMES:
                    s[name] = zeros(p)

            lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
            flags = (decay != 0, group["decoupled_weight_decay"], group["maximize"])
            for t, params, grads, (products, *columns) in self._updates(group, ("mu_product", *_NAMES), create):
                mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (k * group["momentum_decay"])) for k in (t, t + 1))
                for product, (ps, gs, held, *cs) in by_number(products, params, grads, products, *columns):
                    product = set_numbers(held, product * mu)
                    numbers = (lr, beta1, beta2, group["eps"], decay, 1 - beta2**t, mu, mu_next, product)
                    _NADAM(ps, gs, cs, numbers, flags, group["differentiable"])
        return loss
