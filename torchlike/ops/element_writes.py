"""x[i, j] = number and x[i, j] += number in a loop: written straight into x's NumPy array where nobody else reads it, instead of recorded.
The positions and the number may be known elements of other tensors.

The first writes are recorded like any other, as they may be part of a program that returns. Once a program has FEW of them for one
tensor it is a loop over elements: the program runs, and later writes go to the array. A Value that anything else refers to (a pending
program, a saved value, an alias) is never written; Python's references tell. `x[i, j] += 1` reads a view, adds to it and assigns it to x: all
three know such a loop.
"""
from __future__ import annotations

import functools
import sys
import weakref
from operator import mul

import numpy as np

from .._core import dtype as dt
from .._core import program, runs
from .._core.aval import aval
from .._core.grad_mode import mode
from .._core.graph import UNDER_INFERENCE, UNDER_NO_GRAD
from .._core.layout import Layout, contiguous
from .._core.silence import silently
from .._core.value import Value, is_tracer, of_array
from .._tensor import Tensor, _new
from .elements import held
from .known import known, nobody_watches
from .parts import SELECT_PART
from .slicing import SELECT_AT

FEW = 16
MOST_ADDED = 8  # tensors to which loops add that are known at a time
WRITTEN = frozenset({dt.float32, dt.float64, dt.int64, dt.int32, dt.int16, dt.int8, dt.uint8, dt.bool_})
EXACT = 1 << 53  # NumPy makes a float of a larger int by way of another
RANGES = {d: range(np.iinfo(d.np).min, np.iinfo(d.np).max + 1) if d.category == dt.INT else range(-EXACT, EXACT) for d in WRITTEN}  # of ints to add at once


class Loop:
    """The loop over elements that may be running."""

    program: object = None  # the one being recorded when `writes` began
    writes: dict[int, int] = {}  # per tensor, by its identity
    adds_to: set[int] = set()  # the identities of the tensors to whose elements or parts one adds
    read: tuple | None = None  # the index and the layout of the part that was read last for such a tensor
    waited: weakref.ref | None = None  # the tensor for whose sake the last program was ended that had what is written to it

    @staticmethod
    def waited_for(t: Tensor) -> bool:
        return Loop.waited is not None and Loop.waited() is t

    @staticmethod
    def runs() -> bool:
        """Whether the program in progress began after elements were written at once."""
        return program.state.elements is program.state.program

    @staticmethod
    def goes_on(adds_to: Tensor | None = None) -> None:
        if adds_to is not None and id(adds_to) not in Loop.adds_to:
            if len(Loop.adds_to) >= MOST_ADDED:
                Loop.adds_to.clear()
            Loop.adds_to.add(id(adds_to))
        if not program.state.program.results:
            program.state.elements = program.state.program

    @staticmethod
    def begins_to_add(t: Tensor) -> bool:
        """Whether what is added to a part of t is in a loop. Then what was recorded has run, and reads and writes of t's parts are done at once from now on."""
        if not Loop.runs() and not often(t):
            return False
        program.flush("parts written one by one")
        Loop.goes_on(t)
        return True


def _references(t: Tensor) -> tuple[int, int]:
    value = t._value
    array = value.array
    return sys.getrefcount(value), sys.getrefcount(array)


_VALUE, _ARRAY = _references(Tensor._of(of_array(np.zeros(2))))


def is_root(t: Tensor) -> bool:
    """Whether a write to t concerns its value alone: t is no view, and neither autograd nor anybody else has to be told."""
    if t._edge is not None or t._chain or t._inference or t._of_data is not None or not nobody_watches():
        return False
    st = t._storage
    return st is None or st.host is None and st.past is None


def is_plain(t: Tensor) -> bool:
    """Whether nothing but t's array changes where an element is written."""
    if t._layout is not None or not is_root(t):
        return False
    st, a = t._storage, t._value.aval
    return (st is None or t._seen == st.version) and a.dtype in WRITTEN and a.device.type == "cpu"


def is_alone(t: Tensor, views: int = 0) -> bool:
    """Whether nobody else reads t's array, which is in memory of its own, but for so many views of NumPy's."""
    return writable(t._value.array) and _references(t) == (_VALUE + (t._storage is not None), _ARRAY + views)


def changed(t: Tensor) -> None:
    """Count a write to t, whose value is the new one already."""
    t._value.bounds = None
    if t._storage is None:
        t._writes += 1
    else:
        t._count_write(t._storage)
        t._seen = t._storage.version


def write_element(t: Tensor, index: int | Tensor | tuple, value: float | bool | Tensor) -> bool:
    """t[index] = value, if that can be done at once."""
    if not is_plain(t) or value.__class__ is int and not -EXACT < value < EXACT:
        return False
    places = _places(t, index)
    if places is None:
        return False
    if value.__class__ is Tensor:
        value = _number(value, t)
        if value is None:
            return False
    else:
        value = held(value, t._value.aval.dtype)
    with program.lock:
        if not writable(t._value.array) and not made_writable(t, Loop.runs()) or not is_alone(t):
            return False
        t._value.array[places] = value
        changed(t)
        Loop.goes_on()
    return True


def _element(x: Tensor, dtype: dt.dtype) -> np.ndarray | None:
    """What a tensor without dimensions holds, where it is of that dtype, known, and nothing to be differentiated through."""
    return None if x._edge is not None or x._value.aval.dtype is not dtype else known(x)


def _number(x: Tensor, t: Tensor) -> np.ndarray | None:
    """What a tensor without dimensions holds that is written to an element of t."""
    dtype = t._value.aval.dtype
    array = _element(x, dtype)
    if array is not None:
        if Loop.waited_for(t):
            Loop.waited = None
        return array
    return _element(x, dtype) if not x._value.aval.ndim and is_awaited(x, t) else None


def is_awaited(x: Tensor, t: Tensor) -> bool:
    """Whether what is written to a part of t has been computed for that. Where the last operation made it of few numbers, which may be known
    elements, the program is ended once there are FEW such writes: then those numbers are computed at once as well. If they are not, nobody waits again."""
    v, prog = x._value, program.state.program
    plan = prog.node.plan  # of the last operation; None after one that failed
    if (plan is None or x._edge is not None or v.aval.dtype is not t._value.aval.dtype or v.epoch is not prog or v.ref != len(prog.results) - 1
            or not nobody_watches() or not runs.is_tiny(plan) or Loop.waited_for(t) or not often(t)):
        return False
    program.flush("parts written one by one")
    Loop.waited = weakref.ref(t)
    Loop.goes_on()
    return True


def position(i: int | Tensor) -> int | Tensor | None:
    """An index, where it is a known element of a tensor of integers."""
    if i.__class__ is not Tensor or i._value.aval.dtype is not dt.int64:
        return i
    array = _element(i, dt.int64)
    return None if array is None else int(array)


def _places(t: Tensor, index: int | Tensor | tuple) -> tuple | None:
    """The index of one element of t, from 0 on; None where it is none."""
    if index.__class__ is int:  # the usual case
        shape = t._value.aval.shape
        if len(shape) != 1 or not -shape[0] <= index < shape[0]:
            return None
        return (index + shape[0] if index < 0 else index,)
    if index.__class__ is not tuple:
        index = (index,)
    shape = t._value.aval.shape
    if len(index) != len(shape):
        return None
    places = []
    for i, n in zip(index, shape):
        if i.__class__ is not int:
            if i.__class__ is Tensor:
                i = position(i)
            if i.__class__ is not int and not isinstance(i, np.integer):
                return None
            i = int(i)
        if i < 0:
            i += n
        if not 0 <= i < n:
            return None
        places.append(i)
    return tuple(places)


# -- x[i, j] += number ---------------------------------------------------------------------------------------------------------


_new_layout = tuple.__new__  # without the constructor of NamedTuple


def read_element(t: Tensor, index: int | Tensor | tuple) -> Tensor | None:
    """t[index] with its value and unrecorded, where NumPy has t or a loop adds to its elements; None where that cannot be."""
    places = _places(t, index) if t.__class__ is Tensor else None
    if not places or not is_plain(t):
        return None
    with program.lock:
        if t._value.array.__class__ is not np.ndarray and (id(t) not in Loop.adds_to or not made_writable(t, True)):
            return None
        a = t._value.aval
        element = Value(aval((), a.dtype, a.device), np.array(t._value.array[places]))
    if len(places) == 1:
        link, offset = (SELECT_AT, places, (0,)), places[0]
    else:
        link, offset = _link(places), sum(map(mul, places, contiguous(a.shape).strides))
    return _view(t, element, link, _new_layout(Layout, ((), (), offset)))


def read_row(t: Tensor, i: int) -> Tensor | None:
    """t[i] of a matrix, or of more dimensions, as a view that NumPy makes at once; None where it must be recorded."""
    a = t._value.aval
    shape = a.shape
    if len(shape) < 2 or t.__class__ is not Tensor or not -shape[0] <= i < shape[0] or not is_plain(t):
        return None
    i += shape[0] if i < 0 else 0
    with program.lock:
        array = t._value.array
        if array.__class__ is not np.ndarray:
            return None
        row = Value(aval(shape[1:], a.dtype, a.device), array[i])
        row.shared = t._value.shared = True
    strides = contiguous(shape).strides
    return _view(t, row, (SELECT_AT, (i,), (0,)), _new_layout(Layout, (shape[1:], strides[1:], i * strides[0])))


def _view(t: Tensor, value: Value, link: tuple, layout: Layout) -> Tensor:
    """A tensor that shows what `link` takes of t, a tensor without a graph."""
    st, out = t._ensure_storage(), _new(Tensor)
    out._value, out._storage, out._seen, out._base, out._chain, out._layout = value, st, st.version, t, (link,), layout
    if not mode.enabled:
        out._several = None, 0, out._written, UNDER_INFERENCE if mode.inference else UNDER_NO_GRAD
    return out


def _link(places: tuple) -> tuple:
    """An element in a view's chain, as indexing has it."""
    return (SELECT_AT, places, (0,)) if len(places) == 1 else (SELECT_PART, places, _single(len(places)))


@functools.cache
def _single(ndim: int) -> tuple:
    """A part that is one element, as SELECT_PART is told it."""
    return (tuple([(dim, None, -1) for dim in range(ndim)]),)


def add_to_element(view: Tensor, number: float | Tensor, sign: int) -> bool:
    """view += sign * number, where view is an element of another tensor and a loop adds to those."""
    t = view._base
    if t.__class__ is not Tensor or view._value.aval.ndim or view._edge is not None or len(view._chain) != 1 or view._seen != view._storage.version:
        return False
    _, places, _ = view._chain[0]
    dtype = t._value.aval.dtype
    if not places or view._chain[0] != _link(places) or dtype is dt.bool_ or mode.enabled and view._several is not None:
        return False
    if number.__class__ is Tensor:
        number = _number(number, t)
        if number is None:
            return False
    else:
        number *= sign
        sign = 1
        if dtype.category == dt.INT and not (number.__class__ is int and number in RANGES[dtype]):
            return False
    if id(t) not in Loop.adds_to:
        Loop.begins_to_add(t)
        return False
    if not is_plain(t):
        return False
    with program.lock:
        if not is_alone(t):
            Loop.adds_to.discard(id(t))
            return False
        element = t._value.array[(*places, ...)]
        silently(np.add if sign > 0 else np.subtract, element, number, element)
        view._value = of_array(element.copy())
        changed(t)
        view._seen = t._seen
        Loop.goes_on()
    return True


def is_element(value: Tensor, t: Tensor, index: int | Tensor | tuple) -> bool:
    """Whether value is the view t[index], in a loop that adds to t's elements."""
    return value._base is t and len(value._chain) == 1 and value._edge is None and _places(t, index) == value._chain[0][1]


def writable(array) -> bool:
    return array.__class__ is np.ndarray and array.flags.owndata and array.flags.writeable


def often(t: Tensor) -> bool:
    """Count a write to an element of t: whether this is a loop over elements."""
    if Loop.program is not program.state.program:
        Loop.program, Loop.writes = program.state.program, {}
    count = Loop.writes[id(t)] = Loop.writes.get(id(t), 0) + 1
    return count >= FEW


def made_writable(t: Tensor, known: bool = False) -> bool:
    """Whether this is a loop over elements, as may be known: then t's value is in an array of its own."""
    array = t._value.array
    if array is program.META_ARRAY or is_tracer(array):
        return False
    if not known and not often(t):
        return False
    if array is None:
        program.flush("parts written one by one")
        array = t._value.array
        if array is None:  # lost: whoever looks at it is told
            return False
    if not writable(array):
        made = of_array(np.array(array))
        if t._storage is not None:
            t._storage.value = made
        t._value = made
    return True
