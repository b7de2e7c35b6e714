"""Numbers that are known: elements of tensors which the host can read at once, and comparisons of such, which are computed at once.

Most of those are looked at at once (`if x[i] > best`): a program of one comparison costs ten times what NumPy does.
"""
from __future__ import annotations

import numpy as np

from .._core import program
from .._core.aval import NUMBERS
from .._core.registry import Elementwise
from .._core.silence import silently
from .._core.value import Value
from .._tensor import Tensor, is_told_to_nobody

_SIGNED = range(-1 << 63, 1 << 63)


def nobody_watches() -> bool:
    """Whether operations are recorded and nobody is told of them in this thread: no trace, no forward differentiation, no mode."""
    return program.state.capture is None and program.state.program.__class__ is program.Program and is_told_to_nobody()


def known(x: Tensor) -> np.ndarray | None:
    """What a tensor without dimensions holds, where that is on the host."""
    a = x._value.aval
    if a.ndim or a.device.type != "cpu" or x._dispatches:
        return None
    array = x._known()
    return array if array.__class__ is np.ndarray else None


def compared(op: Elementwise, t: Tensor, other: Tensor | float) -> Tensor | None:
    """The comparison of two known numbers; None where it has to be recorded."""
    cls = other.__class__
    if cls is Tensor:
        y, kind = known(other), other._value.aval
    elif cls is float or cls is bool or cls is int and other in _SIGNED:
        y, kind = other, NUMBERS[cls]
    else:
        return None
    x = None if y is None else known(t)
    if x is None or not nobody_watches():
        return None
    plan = op.plan((t._value.aval, kind), ())
    return Tensor._of(Value(plan.outs[0], silently(plan._numpy or plan.numpy, x, y)))
