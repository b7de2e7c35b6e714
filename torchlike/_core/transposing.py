"""Copies of transposed matrices in NumPy."""
from __future__ import annotations

import numpy as np

LINE, CLASH, MANY = 1 << 6, 1 << 10, 1 << 18  # bytes: of a cache's line; of rows whose elements take one another's place in it; of arrays


def copy_of(x: np.ndarray) -> np.ndarray:
    """x in an array of its own. NumPy reads a column after the other, which lies in few sets of the cache where rows are a multiple of 1,024 bytes: each line is fetched
    anew for each of its elements, unless as many columns are copied together as it has."""
    if x.nbytes < MANY or x.ndim < 2 or x.strides[-2] != x.itemsize or x.strides[-1] % CLASH or x.strides[-1] < CLASH or x.shape[-1] < LINE:
        return np.array(x, order="C")
    out, width = np.empty(x.shape, x.dtype), LINE // x.itemsize
    for i in range(0, x.shape[-1], width):
        out[..., i:i + width] = x[..., i:i + width]
    return out
