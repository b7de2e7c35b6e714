"""NumPy rules for elementwise primitives and casts."""
from __future__ import annotations

import numpy as np

from .arrays import numpy_power
from .numpy_lax_rules import direct, dtype_of, in_float32, is_float, is_narrow, out_dtype, rule, total_order

for _name, _function in {
    "add": np.add, "add_any": np.add, "sub": np.subtract, "neg": np.negative, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "is_finite": np.isfinite,
    "real": np.real, "imag": np.imag, "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "nextafter": np.nextafter,
    "shift_left": np.left_shift, "square": np.square,
}.items():
    direct(_name, _function)


def _float_function(name: str, function) -> None:
    rule(name)(lambda eqn: in_float32(function, dtype_of(eqn)))


def _logistic(x):
    return 1 / (1 + np.exp(-x))


for _name, _function in {
    "exp": np.exp, "log": np.log, "log2": np.log2, "expm1": np.expm1, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "sqrt": np.sqrt, "cbrt": np.cbrt, "atan2": np.arctan2,
    "logistic": _logistic,
}.items():
    _float_function(_name, _function)



@rule("rsqrt")
def _rsqrt(eqn):
    return in_float32(lambda x: 1 / np.sqrt(x), dtype_of(eqn))


@rule("one_minus_square")
def _one_minus_square(eqn):
    one = dtype_of(eqn).type(1)
    return in_float32(lambda x: (one + x) * (one - x), dtype_of(eqn))


@rule("exp2")
def _exp2(eqn):
    if dtype_of(eqn).kind == "c":
        ln2 = out_dtype(eqn).type(0.6931471805599453)
        return lambda x: np.exp(x * ln2)
    return in_float32(np.exp2, dtype_of(eqn))


@rule("log1p")
def _log1p(eqn):
    if dtype_of(eqn).kind != "c":
        return in_float32(np.log1p, dtype_of(eqn))

    def log1p(z):  # NumPy's loses the small ones
        a, b = np.real(z), np.imag(z)
        small = np.abs(a) + np.abs(b) < 0.5
        return _complex_of(np.where(small, 0.5 * np.log1p(a * (2 + a) + b * b), np.log(np.hypot(1 + a, b))),
                           np.arctan2(b, 1 + a), z.dtype)
    return log1p


def _complex_of(re, im, dtype):
    out = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), dtype)
    out.real, out.imag = re, im
    return out


@rule("complex")
def _complex(eqn):
    dtype = out_dtype(eqn)
    return lambda re, im: _complex_of(re, im, dtype)


@rule("conj")
def _conj(eqn):
    dtype = out_dtype(eqn)
    return lambda x: np.conj(x).astype(dtype, copy=False)


@rule("mul")
def _mul(eqn):
    dtype = out_dtype(eqn)
    if dtype == dtype_of(eqn):
        return np.multiply
    return lambda x, y: np.multiply(x.astype(dtype), y.astype(dtype))


@rule("mulhi")
def _mulhi(eqn):
    dtype = dtype_of(eqn)
    bits = 8 * dtype.itemsize
    if bits < 64:
        wide = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")
        return lambda x, y: (np.multiply(x, y, dtype=wide) >> bits).astype(dtype)

    def mulhi(x, y):
        low = 0xFFFFFFFF
        xl, yl, xh, yh = x & low, y & low, x >> 32, y >> 32
        if dtype.kind == "i":  # the low product needs all 64 bits
            carry = ((xl.astype(np.uint64) * yl.astype(np.uint64)) >> 32).astype(np.int64)
        else:
            carry = (xl * yl) >> 32
        mid = xh * yl + carry
        return xh * yh + (mid >> 32) + ((xl * yh + (mid & low)) >> 32)
    return mulhi


@rule("div")
def _div(eqn):
    dtype = dtype_of(eqn)
    if dtype.kind == "u":
        top = np.iinfo(dtype).max

        def divide(x, y):
            q = np.floor_divide(x, y)
            return q if np.all(y) else np.where(y == 0, top, q).astype(dtype)
        return divide
    if dtype.kind != "i":
        return np.true_divide

    def div(x, y):
        q = np.floor_divide(np.subtract(x, np.fmod(x, y)), y)
        return q if np.all(y) else np.where(y == 0, -1, q).astype(dtype)
    return div


@rule("rem")
def _rem(eqn):
    dtype = dtype_of(eqn)
    if dtype.kind not in "iu":
        return in_float32(np.fmod, dtype)
    return lambda x, y: np.fmod(x, y) if np.all(y) else np.where(y == 0, x, np.fmod(x, y))


@rule("max", "min")
def _extremum(eqn):
    """NaN wins, and -0.0 < 0.0; of two zeros NumPy takes the second (of narrow floats, the first)."""
    largest = eqn.primitive.name == "max"
    function = np.maximum if largest else np.minimum
    if not is_float(dtype_of(eqn)):
        return function
    literals = [None if is_narrow(dtype_of(eqn)) else getattr(a, "val", None) for a in eqn.invars]
    if literals[1] is not None and (literals[1] != 0 or np.signbit(literals[1]) != largest):
        return function
    if literals[0] is not None and (literals[0] != 0 or np.signbit(literals[0]) != largest):
        return lambda x, y: function(y, x)

    def extremum(x, y):
        r = function(x, y)
        if np.all(r):
            return r
        # of two zeros: their sum is -0.0 only when both are
        return np.where((r == 0) & (x == y), x + y if largest else -(-x - y), r)
    return extremum


@rule("sign")
def _sign(eqn):
    if is_float(dtype_of(eqn)):
        return lambda x: np.copysign(np.sign(x), x)
    return np.sign


@rule("round")
def _round(eqn):
    if int(eqn.params["rounding_method"]) == 1:
        return np.rint

    def half_away(x):
        whole = np.trunc(x)
        return whole + np.copysign((np.abs(x - whole) >= 0.5).astype(whole.dtype), x)
    return in_float32(half_away, dtype_of(eqn))


@rule("pow")
def _pow(eqn):
    dtype = dtype_of(eqn)
    if dtype_of(eqn, 1).kind in "iu":
        exact = dtype_of(eqn, 1).itemsize < 4 and dtype == np.float32
        exponent = np.float32 if exact or is_narrow(dtype) else np.float64
        return lambda x, y: np.power(x, y.astype(exponent)).astype(dtype)
    return in_float32(numpy_power, dtype)


@rule("integer_pow")
def _integer_pow(eqn):
    y = eqn.params["y"]
    if y == 0:
        return np.ones_like
    if y == 1:
        return lambda x: x
    if y == 2:
        return np.square

    def power(x):
        n, result = abs(y), None
        while True:
            if n & 1:
                result = x if result is None else result * x
            n >>= 1
            if not n:
                return result if y > 0 else result.dtype.type(1) / result
            x = x * x
    return power


def _unsigned(x):
    return x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x


@rule("shift_right_logical")
def _shift_right_logical(eqn):
    dtype = dtype_of(eqn)
    return lambda x, y: np.right_shift(_unsigned(x), _unsigned(y)).view(dtype)


@rule("shift_right_arithmetic")
def _shift_right_arithmetic(eqn):
    dtype = dtype_of(eqn)
    if dtype.kind == "i":
        return np.right_shift
    signed = np.dtype(f"i{dtype.itemsize}")  # the top bit is copied whatever the type
    return lambda x, y: np.right_shift(x.view(signed), y.view(signed)).view(dtype)


@rule("population_count")
def _population_count(eqn):
    dtype = dtype_of(eqn)
    return lambda x: np.bitwise_count(_unsigned(x)).astype(dtype)


@rule("clz")
def _clz(eqn):
    dtype = dtype_of(eqn)
    bits = 8 * dtype.itemsize

    def clz(x):
        x = _unsigned(x)
        if bits < 64:
            return (bits - np.frexp(x.astype(np.float64))[1]).astype(dtype)
        high, low = (x >> 32).astype(np.float64), (x & 0xFFFFFFFF).astype(np.float64)
        return np.where(high > 0, 32 - np.frexp(high)[1], 64 - np.frexp(low)[1]).astype(dtype)
    return clz


@rule("eq_to", "lt_to", "le_to")
def _total_comparison(eqn):
    compare = {"eq_to": np.equal, "lt_to": np.less, "le_to": np.less_equal}[eqn.primitive.name]
    if not is_float(dtype_of(eqn)):
        return compare
    return lambda x, y: compare(total_order(x), total_order(y))


@rule("select_n")
def _select_n(eqn):
    if dtype_of(eqn) == bool and len(eqn.invars) == 3:
        def select(which, off, on):
            if which.ndim == 0:
                return on if which else off
            return np.where(which, on, off)
        return select

    def select_n(which, *cases):
        if which.ndim == 0:
            return cases[int(which)]
        out = cases[0]
        for k, case in enumerate(cases[1:], 1):
            out = np.where(which == k, case, out)
        return out
    return select_n


@rule("clamp")
def _clamp(eqn):
    return lambda low, x, high: np.minimum(np.maximum(x, low), high)


@rule("convert_element_type")
def _convert(eqn):
    old, new = dtype_of(eqn), np.dtype(eqn.params["new_dtype"])
    if old == new:
        return lambda x: x
    if old.kind == "c" and new.kind != "c":
        return lambda x: (x != 0) if new == bool else x.real.astype(new)
    if new == bool:
        return lambda x: np.not_equal(x, old.type(0))
    if is_narrow(old) and new.kind in "iuc":
        return lambda x: x.astype(np.float32).astype(new)
    if old.kind in "iuc" and is_narrow(new) and new.kind == "V":
        return lambda x: x.astype(np.float64).astype(new)
    return lambda x: x.astype(new)


@rule("bitcast_convert_type")
def _bitcast(eqn):
    old, new = dtype_of(eqn), np.dtype(eqn.params["new_dtype"])
    if old.itemsize == new.itemsize:
        return lambda x: x.view(new)
    if old.itemsize > new.itemsize:
        return lambda x: np.ascontiguousarray(np.asarray(x)[..., None]).view(new)
    return lambda x: np.ascontiguousarray(x).view(new)[..., 0]


@rule("reduce_precision")
def _reduce_precision(eqn):
    """Round the mantissa to nearest even; overflow to infinity, and below the smallest normal to zero."""
    dtype, exponent, mantissa = dtype_of(eqn), eqn.params["exponent_bits"], eqn.params["mantissa_bits"]
    info = {2: (5, 10), 4: (8, 23), 8: (11, 52)}[dtype.itemsize] if dtype.kind == "f" else (8, 7)
    drop = max(info[1] - mantissa, 0)
    narrow = exponent < info[0]
    bits = np.dtype(f"u{dtype.itemsize}").type
    bias = (1 << (exponent - 1)) - 1
    largest, smallest = (2 - 2.0 ** -mantissa) * 2.0 ** bias if narrow else 0, 2.0 ** (1 - bias) if narrow else 0

    def reduce_precision(x):
        y = np.asarray(x)
        if drop:
            u = y.view(bits)
            odd = (u >> bits(drop)) & bits(1)
            u = (u + (bits((1 << (drop - 1)) - 1) + odd)) & ~bits((1 << drop) - 1)
            y = np.where(np.isnan(y), y, u.view(dtype))
        if narrow:
            size = np.abs(y)
            y = np.where(size > largest, np.copysign(dtype.type(np.inf), y), y)
            y = np.where(size < smallest, np.copysign(dtype.type(0), y), y)
            y = np.where(np.isnan(x), x, y)
        return y
    return reduce_precision
