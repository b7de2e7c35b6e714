"""Optimizers that step during a backward, each as soon as its parameter has its gradient, which is gone afterwards."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._tensor import Tensor
from ...nn.modules.module import Module
from ...optim import Optimizer

__all__: list[str] = []


def _apply_optimizer_in_backward(optimizer_class: type[Optimizer], params: Iterable[Tensor], optimizer_kwargs: dict[str, Any],
                                 register_hook: bool = True) -> None:
    """Give each of `params` an optimizer of its own, beside those that it has."""
    for p in params:
        own = p.__dict__.setdefault("_in_backward_optimizers", [])
        p.__dict__.setdefault("_optimizer_classes", []).append(optimizer_class)
        p.__dict__.setdefault("_optimizer_kwargs", []).append(optimizer_kwargs)
        own.append(optimizer_class([p], **optimizer_kwargs))
        if register_hook and len(own) == 1:
            p.register_post_accumulate_grad_hook(_step)


def _step(p: Tensor) -> None:
    for optimizer in p._in_backward_optimizers:
        optimizer.step()
    p.grad = None


def _get_in_backward_optimizers(module: Module) -> list[Optimizer]:
    """Those of a module's parameters, for their state dicts."""
    return [optimizer for p in module.parameters() for optimizer in getattr(p, "_in_backward_optimizers", ())]
