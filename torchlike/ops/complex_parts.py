"""Complex arrays of a real and an imaginary part; a sum with 1j times a part would make NaN of an infinite one."""
from __future__ import annotations

import numpy as np
from jax import lax


def joined(xp, real, imag, kind):
    """real + i imag as an array of the complex type `kind`."""
    kind = np.dtype(kind)
    part = np.float64 if kind.itemsize == 16 else np.float32
    real, imag = xp.broadcast_arrays(real, imag)
    if xp is not np:
        return lax.complex(real.astype(part), imag.astype(part))
    out = np.empty(real.shape, kind)
    out.real, out.imag = real, imag
    return out
