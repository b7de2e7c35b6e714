"""Whether index arrays lie where they may: at once where they are known, else at the next observation."""
from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._core import program
from .._core.registry import Op
from .._tensor import Tensor, apply


def check_range(index: Tensor, n: int, message, error: type[Exception] = IndexError, negative: bool = True) -> None:
    """`error` when an index is outside [-n, n), or [0, n): now when the indices are known, else at the next observation."""
    v, least = index._current(), -n if negative else 0
    array = v.array
    if array is program.META_ARRAY or program.is_tracer(array):
        return
    if program.guarded(v, lambda v: check_range(Tensor._of(v), n, message, error, negative)):
        return
    if array is None and v.bounds is None and index._storage is not None:
        v.bounds = _seen_of(index._storage.value, index._chain, v.aval.numel)
    if array is not None or v.bounds is not None:
        low, high = bounds(v)
        if low < least or high >= n:
            found = np.asarray(array if array is not None else program.concrete(v))  # torch names the first that is wrong
            raise error(message(int(found[(found < least) | (found >= n)].flat[0])))
        return
    ok = apply(_IN_RANGE, (index, least, n))
    program.check(ok._value, lambda found: error(message(int(found[(found < least) | (found >= n)].flat[0]))), v)


def bounds(v) -> tuple[int, int]:
    """(min, max) of a concrete index value, kept with it."""
    if v.bounds is None:
        a = np.asarray(v.array)
        v.bounds = (int(a.min()), int(a.max())) if a.size else (0, -1)
    return v.bounds


_WHOLE = {"view", "permute", "transpose", "t", "unsqueeze", "squeeze", "expand", "alias"}


def _seen_of(root, chain: tuple, numel: int) -> tuple[int, int] | None:
    """(min, max) of what views show of a value, where that is known or the views show all of it: positions come as slices of a buffer
    or as `arange(n).unsqueeze(0)`, and a wrong one shall be an error on its line."""
    if not numel:
        return 0, -1
    whole, array = all(op.name in _WHOLE for op, *_ in chain), root.array
    if root.bounds is not None and whole:
        return root.bounds
    if array is None or array is program.META_ARRAY or program.is_tracer(array) or root.aval.device.type != "cpu":
        return None
    if whole:
        return bounds(root)  # kept with it: a program must not change once it is compiled and the root an array of JAX's
    array = np.asarray(array)
    for op, numbers, statics in chain:
        if not all(x.__class__ is int for x in numbers):
            return None
        array = op.kernel(np, array, *numbers, *statics)
    return int(array.min()), int(array.max())


_IN_RANGE = Op("in_range", lambda xp, x, least, n: xp.all((x >= least) & (x < n)), shape=lambda a, least, n: ((), dt.bool_), vjp=False)
