"""x[1:-1, 2] = value where no gradient is asked for: recorded as the one operation that it is, without a view of x for it."""
from __future__ import annotations

from .._arguments import refuse_long
from .._core import program
from .._core.layout import Layout
from .._core.value import Value
from .._tensor import Tensor
from .creation import filled
from .element_writes import changed, is_root
from .index_parsing import cuts_of
from .parts import link_of


def write_part(t: Tensor, index: int | slice | tuple, value: float | bool | Tensor) -> bool:
    """t[index] = value, if it is that simple."""
    if not is_root(t):
        return False
    here = t._current()
    a = here.aval
    if here.__class__ is not Value or here.array is program.META_ARRAY:
        return False
    cuts = cuts_of(index if index.__class__ is tuple else (index,), a.shape, False)
    link = None if cuts is None else link_of(t, cuts)
    if link is None:
        return False
    op, statics, *numbers = link
    if value.__class__ is Tensor and value._storage is t._storage is not None and _is_part(value, t, op.layout_of_contiguous(a, (*numbers, *statics))):
        changed(t)  # x[i] += 1 ends so: the view was written already
        return True
    shape = op.layout_of_contiguous(a, (*[0] * len(numbers), *statics)).shape  # whatever the positions
    if value.__class__ is not Tensor:
        if value.__class__ is int:
            refuse_long(value)
        value = filled(shape, value, a.dtype, a.device)
    else:
        b = value._value.aval
        if b.shape != shape or b.dtype is not a.dtype or b.device is not a.device or value._edge is not None or not value._plain:
            return False
        if t._storage is not None and value._storage is t._storage:
            return False
    made = program.record(op.put, [here, value._current(), *numbers], statics)[1][0]
    t._value = made
    if t._storage is not None:
        t._storage.value = made
    changed(t)
    return True


def _is_part(value: Tensor, t: Tensor, part: Layout) -> bool:
    """Whether a tensor of t's storage is this part of t. (Its chain may name it otherwise: positions are data or not as t is known or pending.)"""
    return (value._layout == part and len(value._chain) == 1 and value._chain[0][0].bound is not None and t._layout is None and value._edge is None
            and value._unplaced is None)
