"""What kernels and derivatives do with arrays of either library."""
from __future__ import annotations

import functools
import math

import numpy as np
from jax import lax

from . import dtype as dt
from . import half_rounding
from .aval import Aval
from .halves import MANY, converted

FEW = 1 << 12  # elements that are copied in less time than NumPy's Python takes for a view of them


def powers_of_two(xp, x, to):
    """Numbers as float8_e8m0fnu, exponents of float32: half-way between two goes up. Signs are lost; what is too large, or infinite, is NaN."""
    size = xp.abs(x.astype(np.float32))
    bits = size.view(np.uint32) if xp is np else lax.bitcast_convert_type(size, np.uint32)
    exponent = (bits >> 23) & 0xFF
    up = ((bits & 0x400000) != 0) & (((bits & 0x3FFFFF) != 0) | (exponent > 0)) & (exponent < 0xFF)
    made = (exponent + up.astype(np.uint32)).astype(np.uint8)
    return made.view(to) if xp is np else lax.bitcast_convert_type(made, to)


def to_float8(xp, x, dtype):
    """Numbers in one of the float8 formats. As in torch, what is too large for float8_e4m3fn becomes its largest number; elsewhere infinity or NaN."""
    if dtype is dt.float8_e5m2:
        return x.astype(dtype.np)
    if dtype is dt.float8_e8m0fnu:
        return powers_of_two(xp, x, dtype.np)
    wide = x.astype(np.float32)
    if dtype is dt.float8_e4m3fn:
        wide = xp.where(xp.isnan(wide), wide, xp.clip(wide, -448.0, 448.0))
    return wide.astype(dtype.np)


def stored(xp, x, dtype):
    """A user's numbers in an array of a dtype."""
    return to_float8(xp, x, dtype) if dtype in dt.FLOAT8 else cast(xp, x, dtype.np)


def numpy_power(x, y):
    """np.power. Where one exponent of 0.5 stands for several elements NumPy takes their square root, which -inf does not have, and which of -0.0 is -0.0."""
    if x.dtype.kind == "f" and (y.item() == 0.5 if y.size == 1 else (x.shape != y.shape or 0 in y.strides) and (y == 0.5).any()):
        shape = np.broadcast_shapes(x.shape, y.shape)
        return np.power(np.atleast_1d(x), np.array(np.broadcast_to(y, shape or (1,)))).reshape(shape)
    return np.power(x, y)


def cast(xp, x, np_dtype):
    """x as np_dtype; Python numbers become arrays, so that NumPy keeps the dtype asked for. Doubles go to float16 through float32, as torch's do."""
    if x.__class__ in (float, int, bool, complex):
        if np_dtype.kind in "ui":
            x = int(x)
            return np.asarray(x).astype(np_dtype)  # wraps, as torch's cast of an out-of-range scalar does
        return xp.asarray(x, dtype=np_dtype)
    if x.dtype == np_dtype:
        return x
    if np_dtype.char == "e" and x.dtype.char == "d":
        x = x.astype(np.float32)
    if x.dtype.kind == "c" and np_dtype.kind != "c":
        x = x.real
    if xp is np:
        if x.dtype == bool and np_dtype.kind == "V":  # ml_dtypes takes the byte, which need not be 1 where bytes are viewed as booleans
            x = x.astype(np.float32)
        return x.astype(np_dtype) if x.size < MANY else converted(x, np_dtype)
    if x.dtype == np.float32 and np_dtype == np.float16 and half_rounding.needed():
        return half_rounding.rounded(x)
    return x.astype(np_dtype)


def sum_to(xp, g, shape):
    """The adjoint of broadcasting: g summed to `shape`."""
    if g.shape == shape:
        return g
    axes = _stretched(g.shape, shape)
    if axes:
        g = np.add.reduce(g, axes) if xp is np else xp.sum(g, axis=axes)
    return g.reshape(shape)


@functools.lru_cache(4096)
def _stretched(shape: tuple, narrow: tuple) -> tuple:
    """The axes of `shape` along which an array of shape `narrow` was repeated."""
    lead = len(shape) - len(narrow)
    return (*range(lead), *(i + lead for i, n in enumerate(narrow) if n == 1 and shape[i + lead] != 1))


@functools.lru_cache(4096)
def fits(narrow: tuple, shape: tuple) -> bool:
    """Whether an array of shape `narrow` broadcasts to `shape`."""
    return len(narrow) <= len(shape) and all(a in (1, b) for a, b in zip(reversed(narrow), reversed(shape)))


def spread(xp, x, shape: tuple):
    """xp.broadcast_to(x, shape); with NumPy few numbers are copied, which takes a quarter of the time that its Python does."""
    if xp is not np or x.shape == shape or math.prod(shape) > FEW:
        return xp.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


def conform(xp, g, a: Aval):
    """A gradient as the input's aval wants it: real part for real inputs, summed to its shape, in its dtype."""
    if g.shape == a.shape and g.dtype == a.dtype.np:
        return g
    if g.dtype.kind == "c" and a.dtype.category != dt.COMPLEX:
        g = g.real
    g = sum_to(xp, g, a.shape)
    return cast(xp, g, a.dtype.np)
