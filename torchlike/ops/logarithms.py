"""Powers of two, and logarithms to bases 2 and 10, that are whole where they should be: XLA's go through e."""
from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

_LARGEST = 330  # whole logarithms of float64 to base 10 lie between this and its negative


@functools.cache
def _powers_of_ten(dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return np.array([float(f"1e{k}") for k in range(-_LARGEST, _LARGEST + 1)]).astype(dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _rounded(base: int, x):
    approximate = jnp.log2(x) if base == 2 else jnp.log10(x)
    whole = jnp.round(approximate)
    if base == 2:  # nothing but an exponent
        mantissa = (1 << jnp.finfo(x.dtype).nmant) - 1
        exact = jax.lax.bitcast_convert_type(x, f"i{x.dtype.itemsize}") & mantissa == 0
    else:
        place = jnp.where(abs(whole) <= _LARGEST, whole, 0).astype(np.int32) + _LARGEST
        exact = jnp.asarray(_powers_of_ten(x.dtype))[place] == x
    return jnp.where(exact, whole, approximate)


@_rounded.defjvp
def _slope(base, primals, tangents):
    (x,), (t,) = primals, tangents
    return _rounded(base, x), t / (x * x.dtype.type(math.log(base)))


def log2(xp, x):
    """xp.log2(x)"""
    return xp.log2(x) if xp is np or x.dtype.kind == "c" else _rounded(2, x)


def log10(xp, x):
    """xp.log10(x)"""
    if xp is np and x.dtype == np.float32:  # NumPy's is one unit off at 1000
        return np.log10(x, dtype=np.float64).astype(np.float32)
    return xp.log10(x) if xp is np or x.dtype.kind == "c" else _rounded(10, x)


def exp2(xp, x):
    """xp.exp2(x)"""
    return xp.exp2(x) if xp is np or x.dtype.kind == "c" else xp.power(x.dtype.type(2), x)
