"""torch's dtypes, their NumPy counterparts, and torch's type promotion."""
from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from .errors import not_implemented
from .shown import Shown

BOOL, INT, FLOAT, COMPLEX = range(4)  # promotion categories, lowest first


class dtype(metaclass=Shown):
    """An element type. One object per type, so `is` compares."""

    __slots__ = ("name", "np", "integers", "itemsize", "category", "short", "index")
    __module__ = "torch"
    name: str
    itemsize: int

    def __init__(self, name: str, np_type, category: int, short: str, integers=None):
        """`np_type`: None where no array has the type. `integers`: NumPy's type of those that quantized elements are held as."""
        self.name, self.category, self.short, self.integers = name, category, short, integers and np.dtype(integers)
        if np_type is not None:
            self.np = np.dtype(np_type)
        self.itemsize = np.dtype(np_type or integers or np.int8).itemsize
        self.index = len(_by_name)
        _by_name[name] = self

    def __getattr__(self, name: str):
        if name != "np":
            raise AttributeError(f"'torch.dtype' object has no attribute {name!r}")
        if self.is_quantized:
            raise RuntimeError(f"torch.{self.name}: plain tensors cannot have the type of quantized ones")
        raise not_implemented("copy_", self)

    @property
    def __numpy_dtype__(self) -> np.dtype:
        """NumPy's type, for which NumPy asks where a dtype is given to it or to JAX (`jnp.zeros(3, torch.float32)`)."""
        if self not in _BY_NP.values():
            raise AttributeError(f"NumPy has no {self}")
        return self.np

    @property
    def abbr(self) -> str:
        """The short name that logs of tensors show: `f32`, `bf16`, `f8e4m3fn`."""
        if self.category == BOOL:
            return "b8"
        letters, bits, rest = re.fullmatch(r"([a-z]+)(\d+)_?(.*)", self.name).groups()
        return {"float": "f", "bfloat": "bf", "complex": "c", "int": "i", "uint": "u", "bits": "b"}.get(letters, letters) + bits + rest.replace("_", "")

    @property
    def is_quantized(self) -> bool:
        return self.integers is not None

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        if self.is_quantized:
            raise RuntimeError("isSignedType not supported for quantized types")
        return self.category >= FLOAT or self.name[0] == "i"

    def to_real(self) -> dtype:
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex type of this precision; RuntimeError where torch has none."""
        if self.category < FLOAT or self is float4_e2m1fn_x2:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.short}")
        return complex_of(self)

    def __repr__(self):
        return f"torch.{self.name}"

    @property
    def c_name(self) -> str:
        """The element type's name in C++, which some of torch's errors give."""
        return _C_NAMES.get(self.name) or (f"c10::{self.name}" if self.is_quantized else self.name)

    def __reduce__(self):
        return (by_name, (self.name,))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


_by_name: dict[str, dtype] = {}
_C_NAMES = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
            "float16": "c10::Half", "bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
            "float8_e4m3fn": "c10::Float8_e4m3fn", "float8_e5m2": "c10::Float8_e5m2", "float8_e4m3fnuz": "c10::Float8_e4m3fnuz",
            "float8_e5m2fnuz": "c10::Float8_e5m2fnuz", "float8_e8m0fnu": "c10::Float8_e8m0fnu"}


def by_name(name: str) -> dtype:
    return _by_name[name]


bool_ = dtype("bool", np.bool_, BOOL, "Bool")
uint8 = dtype("uint8", np.uint8, INT, "Byte")
int8 = dtype("int8", np.int8, INT, "Char")
int16 = dtype("int16", np.int16, INT, "Short")
int32 = dtype("int32", np.int32, INT, "Int")
int64 = dtype("int64", np.int64, INT, "Long")
uint16 = dtype("uint16", np.uint16, INT, "UInt16")
uint32 = dtype("uint32", np.uint32, INT, "UInt32")
uint64 = dtype("uint64", np.uint64, INT, "UInt64")
float16 = dtype("float16", np.float16, FLOAT, "Half")
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, FLOAT, "BFloat16")
float32 = dtype("float32", np.float32, FLOAT, "Float")
float64 = dtype("float64", np.float64, FLOAT, "Double")
complex64 = dtype("complex64", np.complex64, COMPLEX, "ComplexFloat")
complex128 = dtype("complex128", np.complex128, COMPLEX, "ComplexDouble")
float8_e4m3fn = dtype("float8_e4m3fn", ml_dtypes.float8_e4m3fn, FLOAT, "Float8_e4m3fn")
float8_e5m2 = dtype("float8_e5m2", ml_dtypes.float8_e5m2, FLOAT, "Float8_e5m2")
float8_e4m3fnuz = dtype("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, FLOAT, "Float8_e4m3fnuz")
float8_e5m2fnuz = dtype("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, FLOAT, "Float8_e5m2fnuz")
float8_e8m0fnu = dtype("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, FLOAT, "Float8_e8m0fnu")  # powers of two and NaN
# NumPy and XLA have no complex of two halves: the name exists (dtype arithmetic needs it), values do not.
complex32 = dtype("complex32", np.complex64, COMPLEX, "ComplexHalf")

FLOAT8 = frozenset({float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu})
_BAREBONES = frozenset({uint16, uint32, uint64})  # storage types that torch hardly computes with
_REAL = {complex32: float16, complex64: float32, complex128: float64}
_BY_NP = {d.np: d for d in _by_name.values() if d is not complex32}


# types that no array has: quantized tensors hold integers of other types, and PyTorch itself hardly more than names those of less than eight bits
qint8, qint32, quint8 = dtype("qint8", None, INT, "QInt8", np.int8), dtype("qint32", None, INT, "QInt32", np.int32), dtype("quint8", None, INT, "QUInt8", np.uint8)
quint4x2, quint2x4 = dtype("quint4x2", None, INT, "QUInt4x2", np.uint8), dtype("quint2x4", None, INT, "QUInt2x4", np.uint8)
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (dtype(f"uint{bits}", None, INT, f"UInt{bits}") for bits in range(1, 8))
int1, int2, int3, int4, int5, int6, int7 = (dtype(f"int{bits}", None, INT, f"Int{bits}") for bits in range(1, 8))
float4_e2m1fn_x2 = dtype("float4_e2m1fn_x2", None, FLOAT, "Float4_e2m1fn_x2")  # two to a byte
NARROW = frozenset({uint1, uint2, uint3, uint4, uint5, uint6, uint7, int1, int2, int3, int4, int5, int6, int7})


def complex_of(d: dtype) -> dtype:
    """The complex type that promotion makes of a floating one."""
    return d if d.is_complex else {float16: complex32, float64: complex128}.get(d, complex64)


def from_numpy_dtype(np_dtype) -> dtype:
    """The torch dtype of a NumPy dtype; TypeError (torch's) when there is none."""
    if (found := _BY_NP.get(np_dtype)) is not None:
        return found
    np_dtype = np.dtype(np_dtype)
    found = _BY_NP.get(np_dtype.newbyteorder("=") if np_dtype.byteorder not in "=|" else np_dtype)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {np_dtype.type.__module__}.{np_dtype.type.__name__}. The only supported types "
            "are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, "
            "uint16, uint8, and bool."
        )
    return found


_FLOAT_ORDER = [bfloat16, float16, float32, float64]


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """torch.promote_types: the smallest type both convert to, by torch's table."""
    a, b = type1, type2
    if a is b and a.__class__ is dtype:
        return a
    for d in (a, b):
        if d.is_quantized:
            raise RuntimeError("promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, offending types: "
                               f"{a.short} {b.short}")
        if d in FLOAT8 or d is float4_e2m1fn_x2:
            raise RuntimeError(f"Promotion for Float{8 * d.itemsize if d in FLOAT8 else 4} Types is not supported, attempted to promote {a.short} and {b.short}")
    for d, other in ((a, b), (b, a)):
        if (d in _BAREBONES or d in NARROW) and other.category != FLOAT:
            raise RuntimeError(f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.short} and {b.short}")
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.category == COMPLEX and low.category == FLOAT:
            return promote_types(complex_of(low), high)
        return high
    if a.category == INT:
        if a.np.kind == b.np.kind:
            return a if a.itemsize > b.itemsize else b
        signed = b if a is uint8 else a
        return int16 if signed is int8 else signed
    if a.category == FLOAT:
        if {a, b} == {float16, bfloat16}:
            return float32
        return max(a, b, key=_FLOAT_ORDER.index)
    return max(a, b, key=lambda d: d.itemsize if d is not complex32 else 4)


def can_cast(from_: dtype, to: dtype) -> bool:
    """torch.can_cast: a cast never goes down a category (complex, float, int, bool)."""
    return from_.category <= to.category


class Default:
    """What Python floats and factories are; read here where a call would cost."""

    float = float32


def get_default_dtype() -> dtype:
    return Default.float


def set_default_dtype(d: dtype) -> None:
    """Sets the type of Python floats and of factories; a floating type only."""
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point or d in FLOAT8:
        raise TypeError("only floating-point types are supported as the default type")
    Default.float = d


def combine(dim: dtype | None, zero: dtype | None, number: dtype | None) -> dtype:
    """torch's three priorities: tensors with dims, 0-dim tensors, Python numbers."""
    return _combine(dim, _combine(zero, number))


def _combine(high: dtype | None, low: dtype | None) -> dtype | None:
    if high is None:
        return low
    if low is None or high.category == COMPLEX:
        return high
    if high.category == FLOAT:
        return complex_of(high) if low.category == COMPLEX else high
    if high.category == BOOL or low.category >= FLOAT:
        return promote_types(high, low)
    return high


def is_narrow(kind: np.dtype) -> bool:
    """A float type that XLA's CPU backend computes in float32: float16, bfloat16, float8."""
    return kind.kind in "fV" and kind.itemsize <= 2
