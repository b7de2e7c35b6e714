"""Stochastic gradient descent with momentum (Sutskever et al. 2013), where the first buffer is the first gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from . import _maths as m
from . import _sparse
from ._rules import Rule, zeros
from .optimizer import (
    Optimizer,
    ParamsT,
    _use_grad_for_differentiable,
    check_fused,
    check_learning_rate,
    check_not_negative,
    closure_loss,
)


def _prepare(lr, decay, momentum, fresh):
    return -lr, decay, momentum, fresh


def _rule(xp, p, g, state, numbers, flags):
    decays, moves, nesterov, maximize = flags
    step, decay, momentum, fresh = numbers
    if maximize:
        g = -g
    if decays:
        g = m.add(xp, g, p, decay)
    if not moves:
        return (m.add(xp, p, g, step),)
    buffer = m.add(xp, m.mul(xp, state[0], momentum), g, fresh)
    g = m.add(xp, g, buffer, momentum) if nesterov else buffer
    return m.add(xp, p, g, step), buffer


_SGD = Rule("sgd", _rule, prepare=_prepare)


class SGD(Optimizer):
    """p -= lr * g, with momentum, dampening, Nesterov's form and weight decay. ValueError for options out of range."""

    _newer_options = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_learning_rate(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self._groups_to_step():
            group, sparse = _sparse.split(group)
            if sparse and group["fused"]:
                raise RuntimeError("`_fused_sgd` does not support sparse gradients")
            for p in sparse:
                self._sparse_step(p, group)
            moves, dampening = group["momentum"] != 0, float(group["dampening"])
            flags = (bool(group["weight_decay"] != 0), moves, group["nesterov"], group["maximize"])
            for first, params, grads, columns in self._momentum_updates(group, moves, dampening):
                numbers = (group["lr"], group["weight_decay"], group["momentum"], 1.0 if first else 1.0 - dampening)
                _SGD(params, grads, columns, numbers, flags, group["differentiable"])
        return loss

    def _sparse_step(self, p: Tensor, group: dict[str, Any]) -> None:
        """The buffer is sparse too."""
        grad = -p._grad if group["maximize"] else p._grad
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])  # an error, as in torch
        if group["momentum"] != 0:
            s = self.state[p]
            if s.get("momentum_buffer") is None:
                s["momentum_buffer"] = grad.clone()
            else:
                s["momentum_buffer"].mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
            buffer = s["momentum_buffer"]
            grad = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        p.add_(grad, alpha=-float(group["lr"]))

    def _momentum_updates(self, group, moves, dampening):
        """A parameter's first buffer is its gradient undamped: zeros, and a dampening of zero."""
        if not moves:
            yield from self._updates(group, (), None)
            return
        new, begun = [], set()
        for p in group["params"]:
            if p._grad is not None:
                s = self.state[p]
                if s.get("momentum_buffer") is None:
                    s["momentum_buffer"] = zeros(p)
                    if hasattr(p, "_lay_state"):
                        p._lay_state(s)
                    new.append(id(p))
        for _, params, grads, columns in self._updates(group, ("momentum_buffer",), None):
            first = [id(p) in new for p in params]
            for p, buffer in zip(params, columns[0]) if new else ():
                if id(p) in begun and id(p) in new:  # again in the step that makes the buffer: torch makes another
                    buffer.zero_()
                begun.add(id(p))
            if dampening == 0 or all(first) or not any(first):
                yield first[0], params, grads, columns
                continue
            for which in (True, False):
                where = [i for i, f in enumerate(first) if f is which]
                yield (
                    which,
                    [params[i] for i in where],
                    [grads[i] for i in where],
                    [[c[i] for i in where] for c in columns],
                )
