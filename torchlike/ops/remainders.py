"""C's fmod of float32 numbers in NumPy, exact and three times as quick as NumPy's, which divides bit by bit."""
from __future__ import annotations

import numpy as np

from .blocks import in_blocks

FEW = 1 << 12  # elements from which on it is quicker
_EXACT = 2.0 ** 29  # a whole quotient below it times a float32 fits a float64


def fmod(xp, x, y):
    """xp.fmod(x, y), to the bit."""
    if xp is not np or x.dtype != np.float32 or max(x.size, y.size) < FEW:
        return xp.fmod(x, y)
    return _by_float64(xp, x, y)


@in_blocks
def _by_float64(xp, x, y):
    with np.errstate(all="ignore"):
        a, b = x.astype(np.float64), y.astype(np.float64)
        quotient = np.trunc(a / b)
        if not (abs(quotient) < _EXACT).all() or np.isinf(b).any():
            return np.fmod(x, y)
        rest = a - quotient * b
        over = rest * a < 0  # a quotient that was rounded up to a whole number
        if over.any():
            rest = np.where(over, rest + np.copysign(b, a), rest)
        return np.copysign(rest, a).astype(np.float32)
