"""torch.nn.quantized: arithmetic as modules, with a place where what comes out can be observed."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlike as torch  # functions that a graph sees
from torchlike._tensor import Tensor
from torchlike.nn.functional import relu
from torchlike.nn.modules.linear import Identity
from torchlike.nn.modules.module import Module

__all__ = ["FXFloatFunctional", "FloatFunctional"]


class FXFloatFunctional(Module):
    """Functions that a model calls as methods, so that a tool can replace them."""

    def _observed(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Any) -> Any:
        """Not what this module is for."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """torch.add of tensors."""
        return self._observed(torch.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """torch.add of a number."""
        return torch.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """torch.mul of tensors."""
        return self._observed(torch.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """torch.mul with a number."""
        return torch.mul(x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """torch.cat."""
        return self._observed(torch.cat(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu of the sum."""
        return self._observed(relu(torch.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """torch.matmul."""
        return self._observed(torch.matmul(x, y))


class FloatFunctional(FXFloatFunctional):
    """The same, whose results go through the module `activation_post_process`."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def _observed(self, x: Tensor) -> Tensor:
        return self.activation_post_process(x)


def __getattr__(name: str) -> Any:
    if name == "dynamic":  # which stands above this package
        import importlib
        return importlib.import_module(f"{__name__}.dynamic")
    if not name.startswith("_"):
        from ...ao.nn import quantized
        if name in quantized.__all__ or name == "modules":
            return getattr(quantized, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
