"""Integers from ranges: the bounds checks and the reduction of raw words behind `random_`, `randint`."""

import math
import warnings

import numpy as np

from .rng_dtypes import (
    DIGITS,
    INTEGERS,
    UNSIGNED,
    cpp_type,
    limits,
    narrow,
    not_implemented,
)
from .rng_generator import FEW, Generator

_CHUNK = 1 << 15
# Ranges from here on use 64-bit words: a 32-bit word modulo such a range would be visibly uneven.
_WIDE_RANGE = 2**28


def _float_to_int64(value: float, dtype: np.dtype) -> int:
    """`value` rounded to `dtype` and truncated as x86 does: what does not fit int64 becomes its minimum."""
    rounded = float(narrow(np.asarray(value, np.float64), dtype))
    return int(rounded) if -(2.0**63) <= rounded < 2.0**63 else -(2**63)


def _representable(low: int, high: int, dtype: np.dtype) -> tuple[int, int]:
    """Bounds moved inwards where rounding `low` or `high - 1` to the float `dtype` would leave [low, high)."""

    def spacing(value: int) -> int:
        return 1 << (abs(value).bit_length() - DIGITS[dtype])

    first, last = _float_to_int64(low + 1, dtype), _float_to_int64(high - 1, dtype)
    new_low = first + spacing(low + 1) if first < low else low
    return new_low, last - spacing(high - 1) if last >= high else high


def _check_bounds(low: int, last: int, dtype: np.dtype) -> None:
    if dtype not in DIGITS and dtype not in INTEGERS and dtype not in UNSIGNED:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    least, greatest = limits(dtype)
    for value, name in ((low, "from"), (last, "to - 1")):
        if not least <= value <= greatest:
            raise RuntimeError(f"{name} is out of bounds for {cpp_type(dtype)}")
        digits = DIGITS.get(dtype, 64)
        if abs(value) > 2**digits:
            warnings.warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {cpp_type(dtype)} "
                "can support discrete uniform distribution only within this range. This warning will become an error "
                "in version 1.7 release, please fix the code in advance",
                UserWarning,
                stacklevel=5,
            )


def _wrapped(value: int) -> int:
    """`value` as the int64 with the same low 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def _integers(gen: Generator, shape: tuple[int, ...], span: int, low: int, dtype: np.dtype, wide: bool) -> np.ndarray:
    """low + word % span in int64 arithmetic, then cast; a span of 2**64 keeps whole words."""
    size, power = math.prod(shape), span & (span - 1) == 0

    def draw(n: int) -> np.ndarray:
        values = gen.words64(n) if wide else gen.words(n)
        kind = values.dtype.type
        values = values & kind(span - 1) if power else values % kind(span)
        values = values.view(np.int64) if wide else values.astype(np.int64)
        if low:
            values += low
        return narrow(values, dtype)

    with gen.lock:
        if size <= _CHUNK:
            return draw(size).reshape(shape)
        flat = np.empty(size, dtype)
        for start in range(0, size, _CHUNK):
            flat[start : start + _CHUNK] = draw(min(_CHUNK, size - start))
    return flat.reshape(shape)


def integers_default(gen: Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """`random_()`: [0, max] for integers and bool, [0, 2**digits] for floats, where every integer is exact."""
    if dtype in DIGITS:
        return _integers(gen, shape, 2 ** DIGITS[dtype] + 1, 0, dtype, dtype == np.float64)
    if dtype not in INTEGERS:
        raise not_implemented("random_kernel_cpu", dtype)
    return _integers(gen, shape, int(limits(dtype)[1]) + 1, 0, dtype, dtype == np.int64)


def integers_between(gen: Generator, shape: tuple[int, ...], low: int, high: int, dtype: np.dtype) -> np.ndarray:
    """Integers of [low, high); RuntimeError if that is empty or leaves the range of `dtype`."""
    if not -(2**63) <= low < 2**63 or not -(2**63) <= high < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype in DIGITS:
        low, high = _representable(low, high, dtype)
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
                f"from={low} >= to={high}"
            )
    span = high - low
    if dtype == np.int64 and span < _WIDE_RANGE and math.prod(shape) <= FEW:
        return np.array([low + w % span for w in gen.few(math.prod(shape))], dtype).reshape(shape)
    _check_bounds(low, high - 1, dtype)
    return _integers(gen, shape, span, low, dtype, span >= _WIDE_RANGE)


def integers_from(gen: Generator, shape: tuple[int, ...], low: int, dtype: np.dtype) -> np.ndarray:
    """`random_(low, None)`: integers from `low` to the greatest value (floats: 2**digits); all of int64 from -2**63."""
    if not -(2**63) <= low < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if low == -(2**63):
        kernel = "random_full_64_bits_range_kernel_cpu"
        if dtype in (np.bool_, np.float16) or dtype in UNSIGNED:
            raise not_implemented(kernel, dtype)
        if dtype != np.int64 and dtype not in DIGITS:
            raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")
        return _integers(gen, shape, 2**64, 0, dtype, True)
    if dtype in DIGITS:
        last = 2 ** DIGITS[dtype]
        low = _representable(low, last, dtype)[0]
        if low > last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
                f"from={low} > to_inc={last}"
            )
    elif dtype in INTEGERS or dtype in UNSIGNED:
        last = _wrapped(int(limits(dtype)[1]))
    else:
        raise RuntimeError("random_from_to_impl handles only integral, floating-point and boolean types")
    _check_bounds(low, last, dtype)
    return _integers(gen, shape, last - low + 1, low, dtype, last - low + 1 >= _WIDE_RANGE)
