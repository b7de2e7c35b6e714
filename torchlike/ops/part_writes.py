"""x[1:-1, 2] = value where no gradient is asked for: recorded as the one operation that it is, without a view of x for it."""
from __future__ import annotations

from .._core import program
from .._core.value import Value
from .._tensor import Tensor
from .creation import filled
from .element_writes import changed
from .index_parsing import parsed
from .known import nobody_watches
from .parts import part_link
from .slicing import index_link, slice_link

_BASIC = frozenset((int, slice))
_LEAST, _MOST = -1 << 63, (1 << 63) - 1


def _is_root(t: Tensor) -> bool:
    """Whether a part of t can be written by what is recorded alone: t is no view, and autograd and nobody else has to be told."""
    if t._edge is not None or t._chain or t._base is not None or t._inference or t._of_data is not None or not t._plain or not nobody_watches():
        return False
    st = t._storage
    return st is None or st.host is None and st.past is None


def write_part(t: Tensor, index: int | slice | tuple, value: float | bool | Tensor) -> bool:
    """t[index] = value, if it is that simple."""
    items = index if index.__class__ is tuple else (index,)
    if not _BASIC.issuperset(map(type, items)) or not _is_root(t):
        return False
    here = t._current()
    a = here.aval
    if here.__class__ is not Value or here.array is program.META_ARRAY or len(items) > a.ndim:
        return False
    cuts = parsed(items, a.shape, False)[0]
    if len(cuts) == 1:
        (dim, start, n, step), = cuts
        link = index_link(t, dim, start) if n < 0 else slice_link(t, dim, start, n, step)
    elif cuts and all(step == 1 for *_, step in cuts):
        link = part_link(t, cuts)
    else:
        return False
    sizes: list = list(a.shape)
    for dim, _, n, _ in cuts:
        sizes[dim] = n
    shape = tuple([n for n in sizes if n >= 0])
    if value.__class__ is not Tensor:
        if value.__class__ is int and not _LEAST <= value <= _MOST:
            return False
        value = filled(shape, value, a.dtype, a.device)
    else:
        b = value._value.aval
        if b.shape != shape or b.dtype is not a.dtype or b.device is not a.device or value._edge is not None or not value._plain:
            return False
        if t._storage is not None and value._storage is t._storage:
            return False
    op, statics, *numbers = link
    made = program.record(op.put, [here, value._current(), *numbers], statics)[1][0]
    t._value = made
    if t._storage is not None:
        t._storage.value = made
    changed(t)
    return True
