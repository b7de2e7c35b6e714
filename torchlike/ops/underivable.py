"""What PyTorch has no derivative for: results that say so when a backward comes by, and arguments that may not require gradients."""
from __future__ import annotations

import functools

from .._core.grad_mode import mode
from .._core.registry import Op
from .._tensor import Tensor, apply


class Underived(Op):
    """A result that was computed in another way, tied to the graph of what it was computed from: `backward` raises `error(text)`."""

    def __init__(self, name: str, text: str, error: type[Exception], torch_name: str | None = None):
        super().__init__(name, lambda xp, result, *sources: result, shape=lambda result, *sources: (result.shape, result.dtype), torch_name=torch_name)
        self.text, self.error = text, error

    @property
    def backward(self):
        raise self.error(self.text)


@functools.cache
def _missing(name: str) -> Underived:
    return Underived(f"underived_{name}", f"derivative for aten::{name} is not implemented", RuntimeError, "NotImplemented")


def underived(name: str, result: Tensor, *sources) -> Tensor:
    """The result of aten::`name`, which requires gradients if one of its sources does, and has none to give."""
    given = [t for t in sources if isinstance(t, Tensor) and t.requires_grad] if mode.enabled else []
    return apply(_missing(name), (result.detach(), *given)) if given else result


def refuse_gradient(x, function: str, name: str) -> None:
    """torch's error for an argument that requires gradients where `function` has none."""
    if isinstance(x, Tensor) and x.requires_grad and mode.enabled:
        raise RuntimeError(f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot have requires_grad True.")
