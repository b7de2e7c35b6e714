"""Powers of two, and logarithms to bases 2 and 10, that are whole where they should be: XLA's go through e."""
from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

_LARGEST = 330  # whole logarithms of float64 to base 10 lie between this and its negative

# log10(2) and 1 / log(10), the first parts of which, of twelve bits, have exact products with exponents and with twelve bits
_TWO, _TWO_MORE, _E, _E_MORE = map(np.float32, (0.301025390625, 4.605039066518657e-06, 0.434326171875, -3.168997136526741e-05))
_LOG1P = [np.float32(c) for c in (0.3333331048488617, -0.25, 0.20002245903015137, -0.16668511927127838, 0.14217762649059296, -0.12396445870399475,
                                  0.11890988051891327, -0.11726600676774979, 0.06800910085439682)]  # (log1p(f) - f + f^2 / 2) / f^3 around 0, by least squares
_ROOT_HALF = 0x3F3504F3  # the bits of sqrt(1 / 2)


@functools.cache
def _powers_of_ten(dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return np.array([float(f"1e{k}") for k in range(-_LARGEST, _LARGEST + 1)]).astype(dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _rounded(base: int, x):
    if base == 10 and x.dtype == np.float32:
        return _log10_single(x)
    approximate = jnp.log2(x) if base == 2 else jnp.log10(x)
    whole = jnp.round(approximate)
    if base == 2:  # nothing but an exponent
        mantissa = (1 << jnp.finfo(x.dtype).nmant) - 1
        exact = jax.lax.bitcast_convert_type(x, f"i{x.dtype.itemsize}") & mantissa == 0
    else:
        place = jnp.where(abs(whole) <= _LARGEST, whole, 0).astype(np.int32) + _LARGEST
        exact = jnp.asarray(_powers_of_ten(x.dtype))[place] == x
    return jnp.where(exact, whole, approximate)


def _log10_single(x):
    """log10 of float32 to two thirds of a unit in the last place, so that powers of ten have whole ones: of exponent and mantissa, in two parts each.
    Looking for x in a table of those powers took three times as long."""
    bits = jax.lax.bitcast_convert_type(x, np.int32)
    small = (bits > 0) & (bits < 1 << 23)  # subnormal numbers, which XLA takes for zeros, are that many times 2^-149
    normal = jnp.where(small, jax.lax.bitcast_convert_type(bits.astype(np.float32), np.int32), bits)
    exponent = (normal - _ROOT_HALF) >> 23
    f = jax.lax.bitcast_convert_type(normal - (exponent << 23), np.float32) - 1
    exponent = (exponent - jnp.where(small, 149, 0)).astype(np.float32)
    series = jnp.full_like(f, _LOG1P[-1])
    for c in _LOG1P[-2::-1]:
        series = series * f + c
    half = f * f * np.float32(0.5)
    high = jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(f - half, np.int32) & -4096, np.float32)
    low = ((f - high) - half) + f * f * f * series
    whole, part = exponent * _TWO, high * _E
    total = whole + part
    made = total + ((part - (total - whole)) + (low * _E + ((high + low) * _E_MORE + exponent * _TWO_MORE)))
    infinity = np.float32(np.inf)
    made = jnp.where((bits > 0) & (bits < 0x7F800000), made, jnp.where(bits << 1 == 0, -infinity, np.float32(np.nan)))
    return jnp.where(x == infinity, infinity, made)


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
