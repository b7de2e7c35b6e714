"""Adam (Kingma and Ba 2015), AMSGrad (Reddi et al. 2018), and decoupled weight decay (Loshchilov and Hutter 2019)."""

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
    check_fused,
    check_learning_rate,
    check_not_negative,
    closure_loss,
)


def _prepare(lr, beta1, beta2, eps, decay, correction1, root2):
    return 1 - lr * decay, decay, 1 - beta1, beta2, 1 - beta2, root2, eps, -(lr / correction1)


def _rule(xp, p, g, state, numbers, flags):
    decays, decoupled, amsgrad, maximize, slow = flags
    keep, decay, new_mean, old_square, new_square, root2, eps, step = numbers
    mean, square = state[:2]
    if maximize:
        g = -g
    if decays:
        if decoupled:
            p = m.mul(xp, p, keep)
        else:
            g = m.add(xp, g, p, decay)
    mean = m.lerp(xp, mean, g, new_mean, small=slow)
    square = m.addcmul(xp, m.mul(xp, square, old_square), g, g, new_square)
    largest = xp.maximum(state[2], square) if amsgrad else square
    scale = m.plus(xp, m.div(xp, m.sqrt(xp, largest), root2), eps)
    p = m.addcdiv(xp, p, mean, scale, step)
    return (p, mean, square, largest) if amsgrad else (p, mean, square)


_ADAM = Rule("adam", _rule, prepare=_prepare)
_NAMES = ("exp_avg", "exp_avg_sq")


class Adam(Optimizer):
    """Steps along the bias-corrected mean of gradients over the root of the mean of their squares.

    `decoupled_weight_decay` makes it AdamW. ValueError for options out of range.
    """

    _newer_options = {"amsgrad": False, "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
                      "decoupled_weight_decay": False, "fused": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_learning_rate(lr, foreach, capturable)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        if not any(all(isinstance(b, kind) for b in betas) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor):
                if not capturable and foreach:
                    raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
                if beta.numel() != 1:
                    raise ValueError(f"Tensor betas[{i}] must be 1-element")
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self._groups_to_step():
            amsgrad, decay, (beta1, beta2) = group["amsgrad"], group["weight_decay"], group["betas"]
            names = (*_NAMES, "max_exp_avg_sq") if amsgrad else _NAMES
            create = zero_state(names, group["capturable"] or group["fused"], bool(group["fused"]))
            b1, b2 = float(beta1), float(beta2)
            flags = (decay != 0, group["decoupled_weight_decay"], amsgrad, group["maximize"], b1 > 0.5)
            for t, params, grads, columns in self._updates(group, names, create):
                numbers = (group["lr"], beta1, beta2, group["eps"], decay, 1 - b1**t, (1 - b2**t) ** 0.5)
                _ADAM(params, grads, columns, numbers, flags, group["differentiable"])
        return loss
