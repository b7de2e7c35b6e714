"""Float32 numbers of [low, high) of large draws, from XLA once a process has drawn many: one pass from words to numbers, where NumPy takes eight."""
from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from jax import numpy as jnp

from .kept_kernel import KeptKernel

LARGE = 1 << 17  # words that it makes numbers of at once
_SECONDS = 4e-9  # a number in NumPy
_COMPILING = 0.1  # seconds lost in NumPy after which it is compiled
_LEAST = 1e-30  # span
_NEAR, _FAR = 1 / 32, 8  # spans between 0 and `low`, where it is not 0: the sum in doubles is exact then, so that NumPy rounds once, too
_LOW24 = np.uint32(2**24 - 1)
_f4 = np.float32


def floats(words: np.ndarray, low: np.float32, high: np.float32) -> np.ndarray | None:
    """Numbers of [low, high) from words, for one draw after the other; None where NumPy has to make them."""
    span = float(high - low)
    if words.size < LARGE or not _LEAST < span or low != 0 and not _NEAR * span <= abs(float(low)) <= _FAR * span:
        return None
    if _KERNEL.call is None:
        _KERNEL.spent(words.size * _SECONDS)
    return None if _KERNEL.call is None else np.asarray(_KERNEL.call(words, _f4(span * 2.0**-24), low, high))


def _floats(words, scale, low, high):
    """For XLA: its compiler makes one fused multiply-add of the product and the sum, as torch's does, where the processor has them."""
    made = (words & _LOW24).astype(np.int32).astype(np.float32) * scale + low
    return jnp.where(made >= high, low, made)


def _is_exact(call: Callable) -> bool:
    """Whether what XLA made gives NumPy's bits, and so torch's."""
    words = np.random.RandomState(0).randint(0, 1 << 32, LARGE, np.uint32)
    words[:3] = 0, 1, _LOW24
    for low, high in ((_f4(0), _f4(1)), (_f4(-0.1), _f4(0.1)), (_f4(3), _f4(5)), (_f4(0), _f4(0.3)), (_f4(-7), _f4(0.3))):
        scale = (high - low) * _f4(2.0**-24)
        wanted = ((words & _LOW24) * np.float64(scale) + np.float64(low)).astype(np.float32)  # the product and the sum are exact in doubles
        wanted[wanted >= high] = low
        if not np.array_equal(np.asarray(call(words, scale, low, high)).view(np.int32), wanted.view(np.int32)):
            return False
    return True


_KERNEL = KeptKernel("uniforms", _floats, [jax.ShapeDtypeStruct((LARGE,), np.uint32), *[jax.ShapeDtypeStruct((), np.float32)] * 3],
                     {"xla_allow_excess_precision": False}, _COMPILING, _is_exact)
