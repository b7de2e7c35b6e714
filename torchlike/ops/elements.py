"""Python's numbers as elements of a dtype: what holds them, what wraps around, and torch's errors for what does not fit."""
from __future__ import annotations

import functools
import math

import ml_dtypes
import numpy as np

from .._arguments import number
from .._core import dtype as dt
from .._core.aval import NUMBERS, Aval, result_dtype
from .._tensor import Tensor


def rounded(x, dtype: dt.dtype):
    """A number as a tensor of 16-bit floats rounds it: what such a tensor is compared with. Others are compared as they are."""
    if x.__class__ is not float or dtype.category != dt.FLOAT or dtype.np.itemsize != 2 or not -65504 <= x <= 65504:
        return x
    return float(dtype.np.type(x))


def held(x, dtype: dt.dtype):
    """A Python number as a tensor of `dtype` holds it; torch's errors for what it cannot hold."""
    if x.__class__ is float and dtype.category == dt.FLOAT and (-65504.0 <= x <= 65504.0 or x in _INFINITIES):  # nearly always
        return x
    x = plain_number(x)
    if x.__class__ is bool:
        return x
    if dtype.category == dt.BOOL:
        return bool(x)
    if x.__class__ is int and dtype.category >= dt.FLOAT and 1 << 63 <= x < 1 << 64:
        x = float(x)  # a record's ints have a sign
    if x.__class__ is int and not -(1 << 63) <= x < 1 << 64:
        raise OverflowError("int too big to convert" if x > 0 else "can't convert negative int to unsigned")
    if x.__class__ is complex and dtype.category != dt.COMPLEX:
        if x.imag:
            raise _does_not_fit(dtype)
        x = x.real
    if dtype.category == dt.INT:
        n = _whole(x, dtype)
        if n is None:
            raise _does_not_fit(dtype)
        return n
    if dtype.category >= dt.FLOAT:
        need_fitting(x, dtype)
    return x


def need_fitting(x: complex, dtype: dt.dtype) -> None:
    """torch's error for a number that is too large for a dtype of floats."""
    largest, infinite = largest_of(dtype), _infinity_of(dtype)
    if dtype is dt.float8_e8m0fnu and x.__class__ is float and x < _LEAST_POWER:  # integers lose their sign
        raise _does_not_fit(dtype)
    if any(largest < abs(part) != infinite for part in ((x.real, x.imag) if x.__class__ is complex else (x,))):
        raise _does_not_fit(dtype)


def _whole(x: float, dtype: dt.dtype) -> int | None:
    """A number as an integer of dtype, where negative integers wrap around in types without a sign; None if it does not fit."""
    info = np.iinfo(dtype.np)
    if info.min <= x <= info.max:
        return int(x)
    return int(x) & int(info.max) if not info.min and isinstance(x, int) and -info.max <= x < 0 else None


_LEAST_POWER = 2.0 ** -127  # the least of float8_e8m0fnu, which has neither zero nor sign


@functools.cache
def _infinity_of(dtype: dt.dtype) -> float:
    """Infinity where dtype has one, else no number."""
    return math.nan if dtype in dt.FLOAT8 and dtype is not dt.float8_e5m2 else math.inf


@functools.cache
def largest_of(dtype: dt.dtype) -> float:
    return float(ml_dtypes.finfo(dtype.to_real().np).max)


def _does_not_fit(dtype: dt.dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {_C_TYPES.get(dtype.name, dtype.name)} without overflow")


def plain_number(x):
    """A Python number as itself: subclasses (enums), NumPy's scalars and JAX's. TypeError for anything else."""
    if x.__class__ in _NUMBERS:
        return x
    if isinstance(x, Tensor) and not x.ndim and not x.requires_grad:
        return x.item()
    x = number(x)
    for kind in _NUMBERS:
        if isinstance(x, kind):
            return kind(x)
    raise TypeError(f"argument must be Number, not {type(x).__name__}")


def aval_of(x) -> Aval:
    """What is known of an operand: a tensor or a number."""
    return x._aval if isinstance(x, Tensor) else NUMBERS[type(x)]


def common_dtype(*operands) -> dt.dtype:
    """The dtype to which operands are promoted."""
    return result_dtype(*map(aval_of, operands))


def factor(x):
    """What torch takes for alpha or value: a number, or a tensor of one number that no gradient is asked of. That is not looked at: an optimizer
    that holds its rate in a tensor stays one program."""
    return x.detach() if isinstance(x, Tensor) and not x.ndim and not x.requires_grad else plain_number(x)


_NUMBERS = (bool, int, float, complex)
_INFINITIES = (math.inf, -math.inf)


def as_integer(x: complex, dtype: dt.dtype) -> int:
    """A number of a user's data as an integer of dtype, or torch's error."""
    if isinstance(x, complex):
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if dtype is dt.uint64 and isinstance(x, float):
        raise TypeError("an integer is required")
    if isinstance(x, int):
        if dtype is dt.uint64 and not 0 <= x < 1 << 64:
            raise OverflowError("int too big to convert" if x > 0 else "can't convert negative int to unsigned")
        if dtype is not dt.uint64 and not -(1 << 63) <= x < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
    n = _whole(x, dtype)
    if n is None:
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return n


_C_TYPES = {"int32": "int", **{t.name: f"c10::F{t.name[1:]}" for t in dt.FLOAT8},
            **{f"{kind}{bits}": f"{kind}{bits}_t" for kind in ("int", "uint") for bits in (8, 16, 32, 64) if (kind, bits) != ("int", 32)},
            "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>",
            "complex128": "c10::complex<double>"}
