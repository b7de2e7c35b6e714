"""Adagrad: steps divided by the root of the sum of squared gradients (Duchi, Hazan and Singer 2011)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from . import _maths as m
from . import _sparse
from ._rules import Rule, step_tensor, zeros
from .optimizer import (
    Optimizer,
    ParamsT,
    _use_grad_for_differentiable,
    check_fused,
    check_learning_rate,
    check_not_negative,
    closure_loss,
)


def _rule(xp, p, g, state, numbers, flags):
    decays, maximize = flags
    rate, eps, decay = numbers
    if maximize:
        g = -g
    if decays:
        g = m.add(xp, g, p, decay)
    total = m.addcmul(xp, state[0], g, g, 1.0)
    return m.addcdiv(xp, p, g, m.plus(xp, m.sqrt(xp, total), eps), -rate), total


_ADAGRAD = Rule("adagrad", _rule)


def _creates(group: dict[str, Any]) -> Callable[[dict, Tensor], None]:
    """What fills a new state of this group."""
    start, fused = group["initial_accumulator_value"], bool(group["fused"])

    def create(state: dict, p: Tensor) -> None:
        state["step"] = step_tensor(0.0, p.device if fused else None, fused)
        state["sum"] = zeros(p, complex(start, start) if p.is_complex() else start)
    return create


class Adagrad(Optimizer):
    """p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum of g^2) + eps). ValueError for options out of range."""

    _newer_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        check_fused(self, fused, foreach, differentiable)
        for group in self.param_groups:
            create = _creates(group)
            for p in group["params"]:
                create(self.state[p], p)

    def share_memory(self) -> None:
        """Move the sums into memory that other processes can see."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self._groups_to_step():
            group, sparse = _sparse.split(group)
            if group["fused"] and (sparse or any(p.dtype.is_complex for p in group["params"] if p._grad is not None)):
                raise RuntimeError("`fused` does not support sparse grad or complex param")
            for p in sparse:
                self._sparse_step(p, group)
            flags = (group["weight_decay"] != 0, group["maximize"])
            for t, params, grads, columns in self._updates(group, ("sum",), _creates(group)):
                numbers = (group["lr"] / (1 + (t - 1) * group["lr_decay"]), group["eps"], group["weight_decay"])
                _ADAGRAD(params, grads, columns, numbers, flags, group["differentiable"])
        return loss

    def _sparse_step(self, p: Tensor, group: dict[str, Any]) -> None:
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        s = self.state[p]
        s["step"] += 1
        rate = float(group["lr"]) / (1 + (float(s["step"]) - 1) * group["lr_decay"])
        grad = -p._grad if group["maximize"] else p._grad
        _sparse.adagrad(p, s["sum"], grad, (rate, group["eps"]))
