"""x[1:-1, 2] = value where no gradient is asked for: recorded as the one operation that it is, without a view of x for it."""
from __future__ import annotations

from .._arguments import refuse_long
from .._core import program
from .._core.layout import contiguous
from .._core.value import Value
from .._tensor import Tensor
from .creation import filled
from .element_writes import changed, is_root
from .index_parsing import parsed
from .parts import link_of

_BASIC = frozenset((int, slice))


def write_part(t: Tensor, index: int | slice | tuple, value: float | bool | Tensor) -> bool:
    """t[index] = value, if it is that simple."""
    items = index if index.__class__ is tuple else (index,)
    if not _BASIC.issuperset(map(type, items)) or not is_root(t):
        return False
    here = t._current()
    a = here.aval
    if here.__class__ is not Value or here.array is program.META_ARRAY or len(items) > a.ndim:
        return False
    link = link_of(t, parsed(items, a.shape, False)[0])
    if link is None:
        return False
    op, statics, *numbers = link
    shape = op.layout(contiguous(a.shape), (*[0] * len(numbers), *statics)).shape  # whatever the positions
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
