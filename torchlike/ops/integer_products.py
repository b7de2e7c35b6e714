"""`torch._int_mm`: the product of two matrices of bytes, in int32, which int8 inference stands on."""
from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._core.registry import Op
from .._core.rng_dtypes import cpp_type
from .._public import FUNCTIONS, with_out
from .._tensor import Tensor, apply
from .matmul import _mm

_PRODUCT = Op("int_mm", lambda xp, x, y: _mm(xp, x.astype(np.int32), y.astype(np.int32)), shape=lambda x, y: ((x.shape[0], y.shape[1]), dt.int32))


def _int_mm(input: Tensor, mat2: Tensor) -> Tensor:
    """input (n, k) of int8 or uint8 times mat2 (k, m) of int8: (n, m) of int32. RuntimeError for other dtypes and shapes."""
    name, a, b = "int_mm_out_cpu", input._value.aval, mat2._value.aval
    if a.ndim != 2:
        raise RuntimeError(f"{name}: Expected self to be of dimension 2 but got {a.ndim}")
    if b.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if b.ndim != 2:
        raise RuntimeError(f"{name}: Expected mat2 to be of dimension 2 but got {b.ndim}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"{name}: self.size(1) needs to match mat2.size(0) but got {a.shape[1]} and {b.shape[0]}")
    if a.dtype is not dt.int8 and a.dtype is not dt.uint8:
        raise RuntimeError(f"{name}: Expected self dtype to be int8 or uint8 but got {cpp_type(a.dtype.np)}")
    if b.dtype is not dt.int8:
        raise RuntimeError(f"{name}: Expected mat2 dtype to be of type int8 but got {cpp_type(b.dtype.np)}")
    return apply(_PRODUCT, (input, mat2))


FUNCTIONS["_int_mm"] = with_out(_int_mm)
