"""Adam for sparse gradients: only rows that a gradient names move, and only their moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from . import _sparse
from ._rules import zeros
from .optimizer import (
    Optimizer,
    ParamsT,
    _use_grad_for_differentiable,
    check_betas,
    check_one_element,
    closure_loss,
)


class SparseAdam(Optimizer):
    """Adam whose moments decay only where there is a gradient. RuntimeError for strided gradients; ValueError for options out of range."""

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_one_element(lr)
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        places = [
            (p, [i, k]) for i, group in enumerate(self.param_groups) for k, p in enumerate(group["params"])
        ]
        if sparse := [at for p, at in places if p._sparse]:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        if complex_ := [at for p, at in places if p.is_complex()]:
            raise ValueError(f"Complex params at indices {complex_}: SparseAdam does not support complex parameters")

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None) -> Any:
        """Update the parameters once."""
        loss = closure_loss(closure)
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            params = [p for p in group["params"] if p._grad is not None]
            if not all(p._grad._sparse for p in params):
                raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
            for p in params:
                s = self.state[p]
                if not s:
                    s["step"], s["exp_avg"], s["exp_avg_sq"] = 0, zeros(p), zeros(p)
                s["step"] += 1
                size = float(group["lr"]) * (1 - beta2 ** s["step"]) ** 0.5 / (1 - beta1 ** s["step"])
                grad = -p._grad if group.get("maximize") else p._grad
                _sparse.adam(p, s["exp_avg"], s["exp_avg_sq"], grad, (size, beta1, beta2, group["eps"]))
        return loss
