"""x[i, j] = number in a loop: written straight into x's NumPy array where nobody else reads it, instead of recorded.

The first writes are recorded like any other, as they may be part of a program that returns. Once a program has FEW of them for one
tensor it is a loop over elements: the program runs, and later writes go to the array. A Value that anything else refers to (a pending
program, a saved value, an alias) is never written; Python's references tell.
"""
from __future__ import annotations

import sys

import numpy as np

from .. import _tensor
from .._core import dtype as dt
from .._core import program
from .._core.value import is_tracer, of_array
from .._tensor import Tensor
from .elements import held

FEW = 16
_DTYPES = frozenset({dt.float32, dt.float64, dt.int64, dt.int32, dt.int16, dt.int8, dt.uint8, dt.bool_})
_EXACT = 1 << 53  # NumPy makes a float of a larger int by way of another
_record = program.record


class _Loop:
    program: object = None  # the one being recorded when `writes` began
    writes: dict[int, int] = {}  # per tensor, by its identity


def _references(t: Tensor) -> tuple[int, int]:
    value = t._value
    array = value.array
    return sys.getrefcount(value), sys.getrefcount(array)


_VALUE, _ARRAY = _references(Tensor._of(of_array(np.zeros(2))))


def _nobody_watches() -> bool:
    """Whether what stands in for the recorder has nobody to tell in this thread."""
    return getattr(_tensor.record, "idle", bool)()


def write_element(t: Tensor, index: int | tuple, value: float | bool) -> bool:
    """t[index] = value, if that can be done at once."""
    if (t._edge is not None or t._chain or t._layout is not None or t._inference or t._selected is not None or t._of_data is not None
            or program.state.capture is not None or _tensor.record is not _record and not _nobody_watches()):
        return False
    st, a = t._storage, t._value.aval
    if st is not None and (st.host is not None or st.past is not None or t._seen != st.version):
        return False
    if a.dtype not in _DTYPES or a.device.type != "cpu" or value.__class__ is int and not -_EXACT < value < _EXACT:
        return False
    if index.__class__ is not tuple:
        index = (index,)
    if len(index) != a.ndim:
        return False
    for i, n in zip(index, a.shape):
        if i.__class__ is not int and not isinstance(i, np.integer) or not -n <= i < n:
            return False
    value = held(value, a.dtype)
    with program.lock:
        if not _writable(t._value.array) and not _made_writable(t):
            return False
        if _references(t) != (_VALUE + (st is not None), _ARRAY) or t._value.shared:
            return False
        t._value.array[index] = value
        t._value.bounds = None
        if st is None:
            t._writes += 1
        else:
            t._count_write(st)
            t._seen = st.version
    return True


def _writable(array) -> bool:
    return array.__class__ is np.ndarray and array.flags.owndata and array.flags.writeable


def _made_writable(t: Tensor) -> bool:
    """Whether this is a loop over elements: then t's value is in an array of its own."""
    array = t._value.array
    if array is program.META_ARRAY or is_tracer(array):
        return False
    if _Loop.program is not program.state.program:
        _Loop.program, _Loop.writes = program.state.program, {}
    count = _Loop.writes[id(t)] = _Loop.writes.get(id(t), 0) + 1
    if count < FEW:
        return False
    if array is None:
        program.flush("elements written one by one")
        array = t._value.array
        if array is None:  # lost: whoever looks at it is told
            return False
    if not _writable(array):
        made = of_array(np.array(array))
        if t._storage is not None:
            t._storage.value = made
        t._value = made
    return True
