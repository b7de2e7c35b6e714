"""What memory holds that nobody wrote: zeros, and under deterministic algorithms what shows where it is read."""
from __future__ import annotations

import numpy as np

from . import dtype as dt

deterministic_mode = 0  # torch.get_deterministic_debug_mode: off, warnings, errors
fills = True  # torch.utils.deterministic.fill_uninitialized_memory


def content(dtype: dt.dtype) -> float | int | bool:
    """The number: 0; while deterministic algorithms are asked for NaN, an integer dtype's largest number, or True."""
    if not (deterministic_mode and fills):
        return 0
    if dtype.category >= dt.FLOAT:
        return float("nan")
    return True if dtype is dt.bool_ else int(np.iinfo(dtype.np).max)
