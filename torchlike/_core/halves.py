"""float16 and float32 into each other in NumPy, whose own conversion goes through C code for one number, with branches.

Large arrays go some elements at a time, by whole-number arithmetic on their bits. What comes out is NumPy's result to the bit.
"""
from __future__ import annotations

import jax
import numpy as np

from .dtype import is_narrow
from .kept_kernel import KeptKernel

MANY = 1 << 12  # elements from which on this is quicker
_BLOCK = 1 << 15  # elements whose steps stay in the cache
_PIECE = 1 << 17  # elements that XLA converts at once
_SECONDS = 2.4e-9  # that NumPy needs for an element beyond what XLA does
_FLOAT32 = np.dtype(np.float32)
_EXPONENT, _TO_UNIT = np.int32(0x7F800000), np.int32(13 << 23)
_SIGN, _BIAS = np.int32(0x8000), np.int32(0x800)
_LEAST, _MOST = np.float32(0.5), np.float32(65520)  # what rounds to infinity
_BITS, _SCALE = np.int32(-0x70002000), np.float32(2.0 ** 112)
_INFINITE = 0xF800  # a half's bits without its sign, doubled
_PAIRS = frozenset({(np.dtype(np.float32), np.dtype(np.float16)), (np.dtype(np.float16), np.dtype(np.float32))})


def converted(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """x.astype(dtype)"""
    if x.size < MANY or (x.dtype, dtype) not in _PAIRS:
        return x.astype(dtype)
    if not x.flags.c_contiguous:
        return converted(x.T, dtype).T if x.flags.f_contiguous else x.astype(dtype)
    return (_narrowed if dtype.itemsize == 2 else _widened)(x.reshape(-1)).reshape(x.shape)


def widened(x: np.ndarray) -> np.ndarray:
    """Narrow floats in float32, in which NumPy computes and sorts them, too: as in torch, a result is rounded once."""
    return converted(x, _FLOAT32) if is_narrow(x.dtype) else x


def _narrowed(x: np.ndarray) -> np.ndarray:
    out = np.empty(x.size, np.float16)
    if x.size >= _PIECE:
        if _KERNEL.call is None:
            _KERNEL.spent(x.size * _SECONDS)
        if _KERNEL.call is not None:
            for start in range(0, x.size, _PIECE):
                start = min(start, x.size - _PIECE)  # the last piece takes some again
                out[start:start + _PIECE] = _KERNEL.call(x[start:start + _PIECE])
            return out
    exponent, room = np.empty(_BLOCK, np.int32), np.empty(_BLOCK, np.float32)
    for i in range(0, x.size, _BLOCK):
        part = x[i:i + _BLOCK]
        _narrow(part, out[i:i + _BLOCK], exponent[:part.size], room[:part.size])
    return out


def _narrow(x, out, unit, size) -> None:
    """A power of two whose last place is that of the half is added to |x|: the hardware rounds, to even as halves do, and the half's
    digits are the last bits of the sum. Its exponent, thirteen places further down, is theirs."""
    given, digits, power = x.view(np.int32), size.view(np.int32), unit.view(np.float32)
    np.abs(x, out=size)
    if not size.max() < _MOST:
        out[...] = x
        return
    np.bitwise_and(given, _EXPONENT, out=unit)
    np.add(unit, _TO_UNIT, out=unit)
    np.maximum(power, _LEAST, out=power)  # subnormal halves share one last place
    np.add(size, power, out=size)
    np.right_shift(digits, 13, out=unit)
    np.add(digits, unit, out=digits)
    np.right_shift(given, 16, out=unit)
    np.bitwise_and(unit, _SIGN, out=unit)
    np.add(digits, unit, out=digits)
    np.add(digits, _BIAS, out=digits)
    np.copyto(out.view(np.uint16), digits, casting="unsafe")


def _widened(h: np.ndarray) -> np.ndarray:
    """The half's bits, shifted to their places, are a float 2**112 times too small, subnormal ones too."""
    out, doubled = np.empty(h.size, np.float32), np.empty(min(_BLOCK, h.size), np.uint16)
    for i in range(0, h.size, _BLOCK):
        part, made = h[i:i + _BLOCK], out[i:i + _BLOCK]
        bits, words, sizes = made.view(np.int32), part.view(np.uint16), doubled[:part.size]
        np.copyto(bits, part.view(np.int16))
        np.left_shift(bits, 13, out=bits)
        np.bitwise_and(bits, _BITS, out=bits)
        np.multiply(made, _SCALE, out=made)
        if np.add(words, words, out=sizes).max() >= _INFINITE:  # infinities and NaN
            made[...] = part
    return out


def _narrow_xla(x):
    return x.astype(np.float16)


_KERNEL = KeptKernel("halves", _narrow_xla, [jax.ShapeDtypeStruct((_PIECE,), np.float32)], {}, compiling=0.05)
