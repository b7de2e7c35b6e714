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
        return _moved(t, device)

    @staticmethod
    def backward(ctx, g):
        return _moved(g, ctx.back), None


def _moved(t: Tensor, device) -> Tensor:
    value = t._current()
    if value.__class__ is not Value:
        from .._leaves import hand_on
        from .._ops import aten
        return hand_on(aten._to_copy.default, value.tensor, dtype=t.dtype, layout=t.layout, device=device)
    if device is META:
        return Tensor._of(Value(aval(value.aval.shape, value.aval.dtype, META), program.META_ARRAY))
    if value.aval.device is META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return Tensor._of(program.move(value, device))


def move(t: Tensor, device) -> Tensor:
    """t on another device."""
    return _Move.apply(t, device)
