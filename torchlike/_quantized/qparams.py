"""Scale and zero point for numbers from a least to a largest one.

The scheme of affine quantization (Jacob et al. 2018): zero is represented exactly, and the zero point follows from the end of the range at which it is
rounded less.
"""
from __future__ import annotations

import numpy as np

SMALLEST = float(np.float32(6.1e-5))  # a smaller scale has an inverse that some machines cannot represent


def choose(low: float, high: float, smallest: int, largest: int) -> tuple[float, int]:
    """Scale (a double) and zero point for numbers low..high as integers smallest..largest."""
    scale, zero_point = choose_with(np, np.float64(low), np.float64(high), smallest, largest)
    return float(scale), int(zero_point)


def choose_with(xp, low, high, smallest: int, largest: int):
    """The same on arrays without dimensions of NumPy or JAX: doubles."""
    def single(x):
        return xp.asarray(x).astype(np.float32).astype(np.float64)

    low, high = xp.minimum(low, 0.0), xp.maximum(high, 0.0)
    steps = float(largest - smallest)
    scale = (high - low) / steps
    with np.errstate(all="ignore"):
        tiny = xp.asarray(scale).astype(np.float32)
        scale = xp.where((tiny == 0) | xp.isinf(np.float32(1) / tiny), 0.1, scale)
        small = scale < SMALLEST
        factor = single(SMALLEST / scale)
        wide = single(SMALLEST * steps)
        new_high = xp.where(low == 0, wide, xp.where(high == 0, high, single(high * factor)))
        new_low = xp.where(low == 0, low, xp.where(high == 0, -wide, single(low * factor)))
        low, high = xp.where(small, new_low, low), xp.where(small, new_high, high)
        scale = xp.where(small, SMALLEST, scale)
        from_low, from_high = smallest - low / scale, largest - high / scale
        first = abs(smallest) + xp.abs(low / scale) < abs(largest) + xp.abs(high / scale)
        place = xp.where(first, from_low, from_high)
        return scale, xp.clip(xp.rint(place), smallest, largest)


def choose_moving(low: np.ndarray, high: np.ndarray, smallest: int, largest: int, symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    """The same for arrays of ends that are moving averages: symmetric ones reach one step further down than up, but only where numbers have both signs."""
    both = (low < 0) & (high > 0) & (symmetric and smallest < 0 < largest)
    down, up = -((largest - smallest) // 2 + 1), (largest - smallest) // 2
    most = np.maximum(np.abs(low / down), np.abs(high / up))
    low, high = (np.where(both, (most * n).astype(np.float32), end) for n, end in ((down, low), (up, high)))
    scale, zero_point = choose_with(np, low, high, smallest, largest)
    return scale.astype(np.float32), np.where(both, 0, zero_point).astype(np.int32)
