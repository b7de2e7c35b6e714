"""x[1:-1, 2] = value where no gradient is asked for: recorded as the one operation that it is, without a view of x for it; or written straight into
x's NumPy array, where that and the value are known and nobody else reads the array (see element_writes.py, which does so for single elements).

A tensor that was just made is not known yet: the first writes to its parts are recorded. A line that writes FEW of them is in a loop (a batch is
put together, a data set is read): from then on what is pending there runs when the line is reached, and writes go to the array.
`x[i] += row` reads a view, adds to it and assigns it to x: all three know such a loop.
"""
from __future__ import annotations

import sys
from types import CodeType

import numpy as np

from .._arguments import refuse_long
from .._core import dtype as dt
from .._core import program
from .._core.aval import FLOAT, aval
from .._core.grad_mode import mode
from .._core.layout import Layout
from .._core.silence import silently
from .._core.value import Unread, Value
from .._tensor import Tensor, _new
from .creation import filled
from .element_writes import EXACT, RANGES, WRITTEN, Loop, changed, is_alone, is_awaited, is_plain, is_root, made_writable, often, position, writable
from .elements import held
from .index_parsing import cuts_of
from .parts import link_of

WORTH = 4  # writes between two programs that are ended for a line; after fewer it is in no loop any more
MOST_LINES = 256


def _count_part() -> int:
    """What sys.getrefcount says of an array that a Value and a variable hold."""
    v = Value(FLOAT, np.zeros(1))
    part = v.array
    return sys.getrefcount(part)


_PART = _count_part()


class _Lines:
    """The lines that write known values to parts of pending tensors in loops, and how many writes had been done at once when a program was ended for each."""

    known: dict[tuple[CodeType, int], int] = {}
    writes = 0


def write_part(t: Tensor, index: int | slice | Tensor | tuple, value: float | bool | Tensor) -> bool:
    """t[index] = value, if it is that simple."""
    if not is_root(t):
        return False
    a = t._value.aval
    if index.__class__ is not tuple:
        index = (index,)
    cuts = cuts_of(index, a.shape, False)
    if cuts is None:
        cuts = cuts_of(tuple(map(position, index)), a.shape, False)
        return cuts is not None and _write_at_once(t, cuts, value)
    if _write_at_once(t, cuts, value):
        return True
    here = t._current()
    if here.__class__ is not Value or here.array is program.META_ARRAY:
        return False
    link = link_of(t, cuts)
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


# -- at once -------------------------------------------------------------------------------------------------------------


def _write_at_once(t: Tensor, cuts: list, value: float | bool | Tensor) -> bool:
    """t's part = value, if both are known and nobody else reads t's array."""
    array = t._value.array
    if array is not None and array.__class__ is not np.ndarray or not is_plain(t):
        return False
    new = _known(value, t)
    if new is None:
        return False
    sizes = _sizes(cuts, t._value.aval.shape)
    if not sizes or value.__class__ is Tensor and new.shape != sizes and not _fits(new.shape, sizes):  # elements were tried before
        return False
    with program.lock:
        if array is None:
            if not _is_in_loop(t) or not made_writable(t, True):
                return False
        elif not writable(array):
            if not Loop.runs() and not often(t) or not made_writable(t, True):
                return False
        del array
        if not is_alone(t):
            return False
        t._value.array[_numpy_index(cuts)] = new
        changed(t)
    _Lines.writes += 1
    return True


def _known(value: float | bool | Tensor, t: Tensor) -> np.ndarray | float | None:
    """What is to be written to t, where the host has it and it need not be converted."""
    dtype = t._value.aval.dtype
    if value.__class__ is not Tensor:
        return None if value.__class__ is int and not -EXACT < value < EXACT else held(value, dtype)
    v = value._value
    if (v.__class__ is not Value or v.aval.dtype is not dtype or value._edge is not None or not value._plain
            or value._storage is not None and value._storage is t._storage):
        return None
    v = value._current()
    if v.epoch.__class__ is Unread:
        v.epoch.read(v)
    array = value._known() if v.array is None and value._chain else v.array  # a view of what is known
    if array is None and is_awaited(value, t):
        array = value._value.array
    elif array is not None and Loop.waited_for(t):
        Loop.waited = None
    return array if array.__class__ is np.ndarray else None


def _is_in_loop(t: Tensor) -> bool:
    """Whether the user's line writes part after part of pending tensors."""
    frame = sys._getframe(3)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("torchlike."):
        frame = frame.f_back
    line = frame.f_code, frame.f_lasti
    before = _Lines.known.get(line)
    if before is None:
        if not often(t):
            return False
        if len(_Lines.known) >= MOST_LINES:
            _Lines.known.clear()
    elif _Lines.writes - before < WORTH:
        del _Lines.known[line]
        return False
    _Lines.known[line] = _Lines.writes
    return True


def _sizes(cuts: list, shape: tuple) -> tuple[int, ...]:
    """The shape of a part."""
    sizes = list(shape)
    for dim, _, n, _ in cuts:
        sizes[dim] = n
    return tuple([n for n in sizes if n >= 0])


def _fits(shape: tuple, sizes: tuple) -> bool:
    """Whether a tensor of that shape is expanded where it is written to a part of these sizes; what it has more dimensions are of size 1."""
    more = max(len(shape) - len(sizes), 0)
    return set(shape[:more]) <= {1} and all(n in (1, m) for n, m in zip(reversed(shape[more:]), reversed(sizes)))


def _numpy_index(cuts: list) -> tuple:
    """A part as NumPy's index."""
    index, at = [], 0
    for dim, start, n, step in cuts:
        index += [slice(None)] * (dim - at)
        index.append(start if n < 0 else slice(start, start + n * step, step))
        at = dim + 1
    return tuple(index)


# -- x[i] += row -----------------------------------------------------------------------------------------------------------


def read_part(t: Tensor, given: int | Tensor | tuple) -> Tensor | None:
    """t[given] with its value and unrecorded, where a loop adds to parts of t."""
    if t.__class__ is not Tensor or not is_plain(t):
        return None
    cuts = cuts_of(tuple(map(position, given)) if given.__class__ is tuple else (position(given),), t._value.aval.shape, True)
    link = link_of(t, cuts) if cuts else None
    if link is None:
        return None
    with program.lock:
        if t._value.array is None:
            Loop.adds_to.discard(id(t))  # until something is added at once
        if not writable(t._value.array) and not made_writable(t, True):
            return None
        array = t._value.array[_numpy_index(cuts)]
    if array.__class__ is not np.ndarray:  # an element
        return None
    op, statics, *numbers = link
    a, out = t._value.aval, _new(Tensor)
    out._value = Value(aval(array.shape, a.dtype, a.device), array)
    t._shows(out, (op, tuple(numbers), statics), op.layout_of_contiguous(a, (*numbers, *statics)))
    Loop.read = given, out._layout
    return out


def is_read_part(value: Tensor, t: Tensor, index: int | Tensor | tuple) -> bool:
    """Whether value is the part of t that read_part gave for this very index: `t[index] += row` ends so."""
    read = Loop.read
    return (read is not None and read[0] is index and value._layout is read[1] and value._base is t and value._storage is t._storage and value._edge is None
            and value._seen == t._storage.version and value._value.aval.dtype is t._value.aval.dtype and is_root(t))


def add_to_part(view: Tensor, other: float | Tensor, sign: int) -> bool:
    """view += sign * other, where view is a part of another tensor and a loop adds to those."""
    t = view._base
    if t.__class__ is not Tensor or view._edge is not None or len(view._chain) != 1 or view._seen != view._storage.version:
        return False
    dtype = t._value.aval.dtype
    if view._chain[0][0].bound is None or dtype is dt.bool_ or dtype not in WRITTEN or mode.enabled and view._several is not None:
        return False
    if other.__class__ is Tensor:
        added = _known(other, t)
        if added is None or added.shape != view._value.aval.shape:
            return False
    elif dtype.category == dt.INT if other.__class__ is float else other not in RANGES[dtype]:
        return False
    else:
        added = other
    with program.lock:
        part = view._value.array
        if part.__class__ is np.ndarray and part.base is t._value.array and sys.getrefcount(part) == _PART and is_plain(t) and is_alone(t, 1):
            silently(np.add if sign > 0 else np.subtract, part, added, part)
            changed(t)
            view._seen = t._seen
            Loop.goes_on(t)
            return True
    if id(t) not in Loop.adds_to:
        Loop.begins_to_add(t)
    return False
