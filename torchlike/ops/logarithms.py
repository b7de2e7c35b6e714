"""Powers of two, and logarithms to bases 2 and 10, that are whole where they should be: XLA's go through e."""
from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

_LARGEST = {2: 1080, 10: 330}  # whole logarithms of float64 lie between these and their negatives


@functools.cache
def _powers(base: int, dtype: np.dtype) -> np.ndarray:
    n = _LARGEST[base]
    with np.errstate(over="ignore", under="ignore"):
        return np.array([float(f"1e{k}") if base == 10 else math.ldexp(1.0, k) if k < 1024 else math.inf for k in range(-n, n + 1)]).astype(dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _rounded(base: int, x):
    approximate = jnp.log2(x) if base == 2 else jnp.log10(x)
    whole, n = jnp.round(approximate), _LARGEST[base]
    place = jnp.where(abs(whole) <= n, whole, 0).astype(np.int32) + n
    return jnp.where(jnp.asarray(_powers(base, x.dtype))[place] == x, whole, approximate)


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
