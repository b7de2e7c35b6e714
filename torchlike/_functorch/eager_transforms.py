"""torch.func's derivatives, and where a tensor becomes an input of one: libraries replace that function, to keep what they know of the tensor (pypose)."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..func._level import Level
from ..func._transforms import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp  # noqa: F401


def _wrap_tensor_for_grad(maybe_tensor: Any, level: Level) -> Any:
    """A tensor of the level's own in the place of `maybe_tensor`, whose gradients still reach it; what is no tensor stays."""
    return level.lifted(maybe_tensor) if isinstance(maybe_tensor, Tensor) else maybe_tensor
