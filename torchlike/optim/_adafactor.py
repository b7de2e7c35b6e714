"""Adafactor: second moments of matrices as an outer product of row and column means (Shazeer and Stern 2018)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from .._tensor import Tensor
from . import _maths as m
from ._rules import Rule, step_tensor, zeros_of
from .optimizer import Optimizer, ParamsT, _use_grad_for_differentiable, check_one_element, closure_loss


def _norm(xp, x):
    return xp.sqrt(xp.sum(xp.square(x.astype(np.float32) if x.dtype.itemsize == 2 else x)))


def _update(xp, p, g, variance, numbers, flags):
    """p after a step with a gradient whose squares are estimated by `variance`."""
    decays = flags[0]
    lr, decay, rate, eps1, eps2, clip, _ = numbers
    count = p.size**0.5
    alpha = xp.maximum(m.number(xp, eps2, p.dtype), _norm(xp, p) / count) * m.number(xp, rate, p.dtype)
    if decays:
        p = m.mul(xp, p, 1 - lr * decay)
    eps1 = m.number(xp, eps1, p.dtype)
    update = (1 / xp.sqrt(xp.maximum(variance, eps1 * eps1))).astype(p.dtype) * g
    scale = xp.maximum(1.0, _norm(xp, update) / (count * m.number(xp, clip, p.dtype)))
    return m.add(xp, p, update, -alpha / scale)


def _matrix_rule(xp, p, g, state, numbers, flags):
    row, column = state
    eps1, weight = m.number(xp, numbers[3], p.dtype), numbers[-1]
    if flags[1]:
        g = -g
    square = xp.square(g.astype(row.dtype))
    row = m.lerp(xp, row, xp.mean(square, axis=-1, keepdims=True), weight)
    column = m.lerp(xp, column, xp.mean(square, axis=-2, keepdims=True), weight)
    variance = xp.matmul(row, column) / xp.maximum(xp.mean(row, axis=-2, keepdims=True), eps1)
    return _update(xp, p, g, variance, numbers, flags), row, column


def _vector_rule(xp, p, g, state, numbers, flags):
    if flags[1]:
        g = -g
    variance = m.lerp(xp, state[0], xp.square(g), numbers[-1])
    return _update(xp, p, g, variance, numbers, flags), variance


_MATRICES, _VECTORS = Rule("adafactor_matrices", _matrix_rule, elementwise=False), Rule("adafactor_vectors", _vector_rule, elementwise=False)


class Adafactor(Optimizer):
    """Adaptive steps in units of the parameters' scale, with little state. ValueError for options out of range."""

    _newer_options = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one_element(lr)
        for ok, words in (
            (0.0 <= lr, f"Learning rate should be >= 0 but is: {lr}"),
            (beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is None or 0.0 <= eps[0], f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (0.0 <= eps[1], f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (1.0 <= d, f"Clipping threshold d should be >= 1 but is: {d}"),
            (0.0 <= weight_decay, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ):
            if not ok:
                raise ValueError(words)
        super().__init__(
            params,
            {
                "lr": lr,
                "beta2_decay": beta2_decay,
                "eps": eps,
                "d": d,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
            },
        )

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            for rule, names, params in (
                (_MATRICES, ("row_var", "col_var"), [p for p in group["params"] if p.ndim > 1]),
                (_VECTORS, ("variance",), [p for p in group["params"] if p.ndim < 2]),
            ):
                self._step(rule, names, {**group, "params": params})
        return loss

    def _step(self, rule: Rule, names: tuple[str, ...], group: dict[str, Any]) -> None:
        if any(p._grad is not None and p.is_complex() for p in group["params"]):
            raise RuntimeError("Adafactor does not support complex parameters")
        lr, (eps1, eps2), decay = group["lr"], group["eps"], group["weight_decay"]
        flags = (decay != 0, group["maximize"])
        for t, params, grads, columns in self._updates(group, names, _create):
            rate = min(float(lr), 1 / t**0.5)
            kinds = {p.dtype for p in params}
            for kind in kinds:  # the default of eps1 depends on the dtype
                where = [i for i, p in enumerate(params) if p.dtype is kind]
                small = float(jnp.finfo(kind.np).eps) if eps1 is None else eps1
                numbers = (lr, decay, rate, small, eps2, group["d"], t ** group["beta2_decay"])
                rule(
                    [params[i] for i in where],
                    [grads[i] for i in where],
                    [[c[i] for i in where] for c in columns],
                    numbers,
                    flags,
                )


def _create(s: dict, p: Tensor) -> None:
    s["step"], grad = step_tensor(), p.grad
    shape = tuple(grad.shape)
    if len(shape) > 1:
        s["row_var"] = zeros_of(grad, (*shape[:-1], 1))
        s["col_var"] = zeros_of(grad, (*shape[:-2], 1, shape[-1]))
    else:
        s["variance"] = zeros_of(grad, shape)
