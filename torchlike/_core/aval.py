"""Aval: the abstract value of a tensor (shape, dtype, device), one object per distinct triple, compared by identity."""
from __future__ import annotations

import math
import sys
import threading

from . import device as _device
from . import dtype as dt
from .interrupts import Uninterrupted


class Aval:
    __slots__ = ("shape", "dtype", "device", "ndim", "numel", "number", "layout", "size")

    def __init__(self, shape, dtype, device, number=False):
        self.shape, self.dtype, self.device, self.number = shape, dtype, device, number
        self.ndim = len(shape)
        self.numel = math.prod(shape)
        self.layout = None  # the contiguous Layout of this shape, filled in by layout.py
        self.size = None  # this shape as torch.Size, filled in by _tensor.py

    def __repr__(self):
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    def __reduce__(self):
        return (aval, (self.shape, self.dtype, self.device))


_interned: dict = {}
_lock = threading.RLock()  # a garbage collection may run a finalizer that asks for one


def aval(shape: tuple, dtype: dt.dtype, device=_device.CPU) -> Aval:
    key = (shape, dtype, device)
    found = _interned.get(key)
    if found is None:
        _ = dtype.np  # raises for a dtype that is only a name: on the user's line, not when the value is asked for
        with _lock:
            found = _interned.setdefault(key, Aval(shape, dtype, device))
    return found


def forget_unused() -> None:
    """Let go of those that nobody else holds. Whoever asks for one meanwhile waits, as there must not be two."""
    with Uninterrupted(), _lock:
        for key in list(_interned):
            found = _interned.pop(key)
            if sys.getrefcount(found) > 2:  # this variable's and getrefcount's own
                _interned[key] = found


# Python numbers among an operation's arguments: data of the program, never structure. Each kind has one aval.
FLOAT = Aval((), dt.float64, None, number=True)
INT = Aval((), dt.int64, None, number=True)
BOOL = Aval((), dt.bool_, None, number=True)
COMPLEX = Aval((), dt.complex128, None, number=True)
NUMBERS = {float: FLOAT, int: INT, bool: BOOL, complex: COMPLEX}


def promotion_dtype(a: Aval) -> dt.dtype:
    """The dtype with which an argument enters promotion: Python floats count as the default dtype."""
    if a is FLOAT:
        return dt.get_default_dtype()
    return dt.complex_of(dt.get_default_dtype()) if a is COMPLEX else a.dtype


def result_dtype(*avals: Aval) -> dt.dtype:
    """torch.result_type over avals (numbers, 0-dim tensors, tensors with dims; None is skipped)."""
    classes = [None, None, None]  # tensors with dims, 0-dim tensors, numbers
    for a in avals:
        if a is not None:
            rank = 2 if a.number else 0 if a.ndim else 1
            d = promotion_dtype(a)
            classes[rank] = d if classes[rank] is None else dt.promote_types(classes[rank], d)
    return dt.combine(*classes)


def broadcast_shapes(*shapes: tuple) -> tuple:
    """The broadcast of shapes; torch's RuntimeError when they do not match."""
    out = shapes[0]
    for other in shapes[1:]:
        if other == out or not other:
            continue
        if not out:
            out = other
            continue
        n = max(len(out), len(other))
        a, b = (1,) * (n - len(out)) + out, (1,) * (n - len(other)) + other
        for i in range(n - 1, -1, -1):  # the last that does not fit is named
            if a[i] != b[i] and a[i] != 1 and b[i] != 1:
                raise RuntimeError(f"The size of tensor a ({a[i]}) must match the size of tensor b ({b[i]}) at non-singleton dimension {i}")
        out = tuple([y if x == 1 else x for x, y in zip(a, b)])
    return out
