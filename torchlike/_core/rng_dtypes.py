"""What the random functions know of a NumPy dtype: its names in PyTorch's messages, its limits and its casts."""

import functools

import ml_dtypes
import numpy as np

bfloat16 = np.dtype(ml_dtypes.bfloat16)

# dtype: (PyTorch's scalar type, the C++ type)
_NAMES = {
    "bool": ("Bool", "bool"),
    "uint8": ("Byte", "unsigned char"),
    "int8": ("Char", "signed char"),
    "int16": ("Short", "short int"),
    "int32": ("Int", "int"),
    "int64": ("Long", "long int"),
    "uint16": ("UInt16", "short unsigned int"),
    "uint32": ("UInt32", "unsigned int"),
    "uint64": ("UInt64", "long unsigned int"),
    "float16": ("Half", "c10::Half"),
    "bfloat16": ("BFloat16", "c10::BFloat16"),
    "float32": ("Float", "float"),
    "float64": ("Double", "double"),
    "complex64": ("ComplexFloat", "c10::complex<float>"),
    "complex128": ("ComplexDouble", "c10::complex<double>"),
}
# Bits of the significand, the leading one included.
DIGITS = {np.dtype(np.float16): 11, bfloat16: 8, np.dtype(np.float32): 24, np.dtype(np.float64): 53}
INTEGERS = frozenset(np.dtype(t) for t in ("uint8", "int8", "int16", "int32", "int64", "bool"))
UNSIGNED = frozenset(np.dtype(t) for t in ("uint16", "uint32", "uint64"))


def scalar_type(dtype: np.dtype) -> str:
    """PyTorch's name of the scalar type: 'Float', 'Long', 'Float8_e5m2' ..."""
    return _NAMES[dtype.name][0] if dtype.name in _NAMES else dtype.name.capitalize()


def cpp_type(dtype: np.dtype) -> str:
    """The C++ type that PyTorch's messages print."""
    return _NAMES[dtype.name][1] if dtype.name in _NAMES else f"c10::{dtype.name.capitalize()}"


def not_implemented(kernel: str, dtype: np.dtype) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(dtype)}'")


@functools.cache
def limits(dtype: np.dtype) -> tuple[int | float, int | float]:
    """The least and the greatest finite value."""
    if dtype in DIGITS:
        info = ml_dtypes.finfo(dtype)
        return float(info.min), float(info.max)
    if dtype == np.bool_:
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def narrow(values: np.ndarray | np.generic | float, dtype: np.dtype) -> np.ndarray:
    """`values` cast to `dtype`; a 16-bit float goes through float32, where PyTorch's conversions round first."""
    values = np.asarray(values)
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.itemsize == 2 and dtype in DIGITS:
            values = values.astype(np.float32)
        return values.astype(dtype)


def real_parts(out: np.ndarray) -> np.ndarray:
    """A complex array seen as twice as many reals; any other array as it is. `out` is flat."""
    if out.dtype.kind != "c":
        return out
    return out.view(np.float32 if out.dtype == np.complex64 else np.float64)
