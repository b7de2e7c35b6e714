"""torch.autograd.Variable: what tensors with gradients were called before they were tensors."""
from __future__ import annotations

import warnings
from typing import Any

from .._tensor import Tensor
from .engine import queue_callback

__all__ = ["Variable"]


class VariableMeta(type):
    """Every tensor is an instance of Variable."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class _Engine:
    """What libraries ask of the backward that is under way."""

    queue_callback = staticmethod(queue_callback)


class Variable(metaclass=VariableMeta):
    """Variable(data, requires_grad=False): a tensor that shares data's memory, without its history."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:
        if volatile is not None:
            warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2)
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().as_subclass(Tensor).requires_grad_(bool(requires_grad))
