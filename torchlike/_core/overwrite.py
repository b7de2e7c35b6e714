"""Writing in place in the first tier: an operation that changes a part of an array copies the rest, unless nobody reads the array any more.

NumPy's references tell: an array that only its cell of the running program holds, and no view looks into, may be written.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from operator import itemgetter

import numpy as np

_free: list[np.ndarray | None] = [None]  # what the running kernel may write; programs run one at a time


def may_write(x: np.ndarray) -> bool:
    """Whether a kernel may write into its argument x."""
    return x is _free[0]


def changeable(x: np.ndarray) -> np.ndarray:
    """x where a kernel may write into it, else a copy."""
    return x if x is _free[0] else x.copy()


def _holders(base: np.ndarray, *rest) -> tuple[int, int]:
    """References to the first argument of a kernel, and to the memory that it is a view of."""
    return sys.getrefcount(base), sys.getrefcount(base.base)


_cells = [np.zeros((2, 2)).reshape(4), None]
_ALONE, _MEMORY_ALONE = _holders(*itemgetter(0, 1)(_cells))


def overwriting(kernel: Callable) -> Callable:
    """A kernel that is given its first argument for good: it is called with that of a cell that no later step reads."""
    def run(base, *rest):
        memory = base.base
        if sys.getrefcount(base) != _ALONE or not base.flags.writeable:
            return kernel(base, *rest)
        if memory is None:
            if not base.flags.owndata:
                return kernel(base, *rest)
        elif (memory.__class__ is not np.ndarray or not memory.flags.owndata or memory.size != base.size or not base.flags.c_contiguous
              or sys.getrefcount(memory) != _MEMORY_ALONE + 1):
            return kernel(base, *rest)
        _free[0] = base
        try:
            return kernel(base, *rest)
        finally:
            _free[0] = None
    return run
