"""Moving tensors between devices, with gradients that move back."""
from __future__ import annotations

from .._core import program
from .._core.aval import aval
from .._core.device import META
from .._core.value import Value
from .._tensor import Tensor
from .function import Function


class _Move(Function):
    """ToCopy: the same numbers on another device."""

    @staticmethod
    def forward(ctx, t, device):
        ctx.back = t.device
        return Tensor._of(_moved(t, device))

    @staticmethod
    def backward(ctx, g):
        return Tensor._of(_moved(g, ctx.back)), None


def _moved(t: Tensor, device) -> Value:
    value = t._current()
    if device is META:
        return Value(aval(value.aval.shape, value.aval.dtype, META), program.META_ARRAY)
    if value.aval.device is META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return program.move(value, device)


def move(t: Tensor, device) -> Tensor:
    """t on another device."""
    return _Move.apply(t, device)
