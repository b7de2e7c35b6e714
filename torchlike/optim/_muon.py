"""Muon: momentum whose matrix is replaced by its nearest orthogonal matrix, by Newton-Schulz iterations (Jordan et al. 2024)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._tensor import Tensor
from . import _maths as m
from ._rules import Rule, zeros
from .optimizer import Optimizer, ParamsT, _use_grad_for_differentiable, check_one_element, closure_loss

_SCALES = {
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}


def _matmul(xp, a, b):
    if xp is np:  # NumPy has no 16-bit products
        return np.matmul(a.astype(np.float32), b.astype(np.float32))
    return jnp.matmul(a, b, preferred_element_type=jnp.float32)


def orthogonal(xp, x, numbers, steps: int):
    """Singular values of the matrix x brought near one: `steps` quintic iterations in bfloat16."""
    a, b, c, eps = numbers
    half = jnp.bfloat16
    number = lambda v: m.number(xp, v, np.dtype(np.float32))
    x = x.astype(half)
    turn = x.shape[0] > x.shape[1]
    if turn:
        x = x.T
    norm = xp.sqrt(xp.sum(xp.square(x.astype(np.float32)))).astype(half).astype(np.float32)
    x = (x.astype(np.float32) / xp.maximum(norm, number(eps))).astype(half)
    for _ in range(steps):
        gram = _matmul(xp, x, x.T).astype(half)
        poly = (number(b) * gram.astype(np.float32) + number(c) * _matmul(xp, gram, gram)).astype(half)
        x = (number(a) * x.astype(np.float32) + _matmul(xp, poly, x)).astype(half)
    return x.T if turn else x


def _rule(xp, p, g, state, numbers, flags):
    nesterov, steps, scale = flags
    lr, decay, momentum, *rest = numbers
    buffer = m.lerp(xp, state[0], g, 1 - momentum)
    update = m.lerp(xp, g, buffer, momentum) if nesterov else buffer
    update = orthogonal(xp, update, rest, steps).astype(p.dtype)
    return m.add(xp, m.mul(xp, p, 1 - lr * decay), update, -(lr * _SCALES[scale](*p.shape))), buffer


_MUON = Rule("muon", _rule, views=False, elementwise=False)


class Muon(Optimizer):
    """For the matrices inside a network; other parameters belong to another optimizer. ValueError for options out of range."""

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one_element(lr)
        for value, words in ((lr, "Learning rate"), (momentum, "momentum"), (weight_decay, "weight decay")):
            if not 0.0 <= value:
                raise ValueError(f"{words} should be >= 0 but is: {value}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _SCALES:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr,
                "weight_decay": weight_decay,
                "momentum": momentum,
                "nesterov": nesterov,
                "ns_coefficients": ns_coefficients,
                "eps": eps,
                "ns_steps": ns_steps,
                "adjust_lr_fn": adjust_lr_fn,
            },
        )
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            if any(p._grad is not None and p.is_complex() for p in group["params"]):
                raise RuntimeError("Muon does not support complex parameters")
            if group["ns_steps"] >= 100:
                raise ValueError("Number of steps must be less than 100 for computational efficiency")
            if len(group["ns_coefficients"]) != 3:
                raise ValueError("Coefficients must be a tuple of exactly 3 values")
            flags = (bool(group["nesterov"]), group["ns_steps"], group["adjust_lr_fn"] or "original")
            numbers = (group["lr"], group["weight_decay"], group["momentum"], *group["ns_coefficients"], group["eps"])
            for _, params, grads, columns in self._updates(group, ("momentum_buffer",), _create):
                _MUON(params, grads, columns, numbers, flags)
        return loss


def _create(s: dict, p: Tensor) -> None:
    s["momentum_buffer"] = zeros(p)
