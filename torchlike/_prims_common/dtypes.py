"""Which dtype an operation computes in and returns."""
from __future__ import annotations

import enum
import functools
from typing import Any

from .._core import dtype as dt
from .._tensor import Tensor
from ..ops.queries import result_type

Number = (bool, int, float, complex)
NumberType = bool | int | float | complex
NumberTypeType = type[bool] | type[int] | type[float] | type[complex]
_COMPLEX = {dt.float16: dt.complex32, dt.bfloat16: dt.complex64, dt.float32: dt.complex64, dt.float64: dt.complex128}
_REAL = {dt.complex32: dt.float16, dt.complex64: dt.float32, dt.complex128: dt.float64}
_COMPUTED_AS = {dt.float16: dt.float32, dt.bfloat16: dt.float32, dt.complex32: dt.complex64}


class ELEMENTWISE_TYPE_PROMOTION_KIND(enum.Enum):
    """How the dtypes of elementwise operations come of their inputs'."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)  # 16-bit floats are computed as they are
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class RETURN_TYPE(enum.Enum):
    """What an operation's result is to its inputs."""

    NEW = (0,)
    VIEW = (1,)
    INPLACE = (2,)
    NONE = (3,)


class REDUCTION_OUTPUT_TYPE_KIND(enum.Enum):
    """How a reduction's dtype comes of its input's."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


def _asked(dtype: Any) -> dt.dtype:
    if not isinstance(dtype, dt.dtype):
        raise AssertionError(f"Expected torch.dtype, got {type(dtype)}")
    return dtype


def is_boolean_dtype(dtype: dt.dtype) -> bool:
    """Whether it is bool."""
    return _asked(dtype) is dt.bool_


def is_integer_dtype(dtype: dt.dtype) -> bool:
    """Whether it is an integer's; bool is none."""
    return not (_asked(dtype) is dt.bool_ or dtype.is_floating_point or dtype.is_complex)


def is_low_precision_dtype(dtype: dt.dtype) -> bool:
    """Whether operations compute it as a wider one: floats of 16 bits, and complex numbers of those."""
    return _asked(dtype) in _COMPUTED_AS


def is_float_dtype(dtype: dt.dtype) -> bool:
    """Whether it is a real float's."""
    return _asked(dtype).is_floating_point


def is_complex_dtype(dtype: dt.dtype) -> bool:
    """Whether it is a complex number's."""
    return _asked(dtype).is_complex


def is_grad_dtype(dtype: dt.dtype) -> bool:
    """Whether tensors of it can require gradients."""
    return dtype.is_floating_point or is_complex_dtype(dtype)


def corresponding_real_dtype(dtype: dt.dtype) -> dt.dtype:
    """That of a complex number's parts. KeyError for what is not complex."""
    return _REAL[dtype]


def corresponding_complex_dtype(dtype: dt.dtype) -> dt.dtype:
    """That of complex numbers with such parts. KeyError for what is no float."""
    return _COMPLEX[dtype]


def get_computation_dtype(dtype: dt.dtype) -> dt.dtype:
    """What operations compute it as: float32 for floats of 16 bits."""
    return _COMPUTED_AS.get(dtype, dtype)


def dtype_to_type(dtype: dt.dtype) -> type:
    """Python's type of its numbers."""
    return bool if is_boolean_dtype(dtype) else complex if dtype.is_complex else float if dtype.is_floating_point else int


def type_to_dtype(typ: type) -> dt.dtype:
    """The dtype of tensors made of such Python numbers."""
    if not isinstance(typ, type):
        raise AssertionError(f"Expected type, got {type(typ)}")
    if typ not in Number:
        raise ValueError(f"Invalid type {typ}!")
    return result_type(typ(1), typ(1))


def get_dtype(x: Tensor | NumberType) -> dt.dtype:
    """A tensor's dtype, or a number's."""
    return x.dtype if isinstance(x, Tensor) else type_to_dtype(type(x))


def dtype_or_default(dtype: dt.dtype | None) -> dt.dtype:
    """It, or the default dtype."""
    return dt.get_default_dtype() if dtype is None else dtype


def number_type(x: NumberType) -> type:
    """A Python number's type."""
    return type(x)


def is_weakly_lesser_type(a: type, b: type) -> bool:
    """Whether a is not after b in bool, int, float, complex."""
    for t in (a, b):
        if t not in Number:
            raise RuntimeError(f"Expected builtin numeric types, found {t}")
    return Number.index(a) <= Number.index(b)


def get_higher_type(a: type, b: type) -> type:
    """The later one in bool, int, float, complex."""
    return b if is_weakly_lesser_type(a, b) else a


def get_higher_dtype(a: Any, b: Any) -> dt.dtype | None:
    """What two dtypes promote to, given themselves, as tensors or as numbers; None counts for nothing."""
    known = [x if isinstance(x, dt.dtype) else get_dtype(x) for x in (a, b) if x is not None]
    return functools.reduce(dt.promote_types, known) if known else None


def can_safe_cast_to(*, cast_to: dt.dtype, cast_from: dt.dtype) -> bool:
    """Whether the kind of number (complex, float, integer, bool) stays or widens."""
    return is_weakly_lesser_type(dtype_to_type(cast_from), dtype_to_type(cast_to))


def elementwise_dtypes(*_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[dt.dtype, dt.dtype]:
    """The dtypes that an elementwise operation of these tensors and numbers computes in, and returns. ValueError for other arguments (None is left out)."""
    args = [x for x in _args if x is not None]
    wrong = next((x for x in args if not isinstance(x, (Tensor, *Number))), None)
    if wrong is not None:
        raise ValueError(f"Unexpected type {type(wrong)} when computing elementwise type promotion!")
    kinds, kind = ELEMENTWISE_TYPE_PROMOTION_KIND, type_promotion_kind
    found = _promoted(args)
    if kind is kinds.INT_TO_FLOAT and not is_grad_dtype(found):
        found = dt.get_default_dtype()
    elif kind is kinds.BOOL_TO_LONG and found is dt.bool_:
        found = dt.int64
    computed = found if kind is kinds.NO_OPMATH else get_computation_dtype(found)
    if kind is kinds.ALWAYS_BOOL:
        return computed, dt.bool_
    return computed, _REAL[found] if kind is kinds.COMPLEX_TO_FLOAT and found.is_complex else found


def _promoted(args: list) -> dt.dtype:
    """What the arguments promote to: tensors with dimensions first; tensors without, and then numbers, decide where their kind is a higher one."""
    found = None
    for group in ([x for x in args if isinstance(x, Tensor) and x.ndim], [x for x in args if isinstance(x, Tensor) and not x.ndim],
                  [x for x in args if not isinstance(x, Tensor)]):
        if not group:
            continue
        dtype = functools.reduce(dt.promote_types, map(get_dtype, group))
        if found is None:
            found = dtype
        elif not is_weakly_lesser_type(dtype_to_type(dtype), dtype_to_type(found)):
            found = dt.promote_types(found, dtype) if isinstance(group[0], Tensor) or not dtype.is_complex else (
                _COMPLEX.get(found, dt.promote_types(found, dtype)))
    return found


def reduction_dtypes(arg: Any, output_dtype_kind: REDUCTION_OUTPUT_TYPE_KIND, dtype: dt.dtype | None = None) -> tuple[dt.dtype, dt.dtype | None]:
    """The dtypes that a reduction computes in and returns; the second is None where it keeps what it computes in."""
    kinds, given = REDUCTION_OUTPUT_TYPE_KIND, dtype or get_dtype(arg)
    computed = get_computation_dtype(given)
    if output_dtype_kind is kinds.KEEP_PROMOTED_TYPE:
        return computed, None
    if output_dtype_kind is kinds.ALWAYS_BOOL:
        return computed, dt.bool_
    return computed, _REAL[given] if output_dtype_kind is kinds.COMPLEX_TO_FLOAT and given.is_complex else given


def set_correction(unbiased: bool | None = None, correction: NumberType | None = None) -> float:
    """What a variance subtracts from the count: 1 where neither is given."""
    if correction is not None and unbiased is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    if not isinstance(correction, (int, float)) or isinstance(correction, bool):
        raise ValueError("correction argument should be integer or float")
    return float(correction)
