"""Elementwise arithmetic with torch's promotion: operators, powers, division, min and max."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._arguments import need_tensor, number
from .._core import dtype as dt
from .._core.aval import NUMBERS
from .._core.derivative import Underivable
from .._core.errors import class_name, not_implemented
from .._core.registry import OPS, Elementwise, Op
from .._core.rng_dtypes import cpp_type
from .._fields import Fields
from .._kinds import combination
from .._public import FUNCTIONS as F
from .._public import named, public
from .._tensor import Tensor, apply
from .._writing import fill_out, write_into
from .blocks import in_blocks
from .choosing import choose
from .elements import aval_of, common_dtype, factor, held, plain_number
from .inverse_circular import arctan2
from .narrow import NARROW, Rounded, Scaled, Stepped, stepped
from .powers import power
from .quotients import Quotient, over_twice
from .remainders import fmod as exact_fmod
from .underivable import underived

PLAIN = (float, int)


_OF_NUMBERS = frozenset({"add", "sub", "mul", "div", "floor_divide"})  # torch takes two numbers here, and gives a tensor


def operands(name: str, a, b, numbers: tuple[str, ...] = ("input", "other")):
    """Two operands of which at least one is a Tensor; NumPy scalars become Python numbers. TypeError as torch's.

    `numbers`: which of the two may be a number.
    """
    a, b = number(a), number(b)
    for x, position, k in ((a, "input", 1), (b, "other", 2)):
        if not isinstance(x, (Tensor, int, float, complex) if position in numbers else Tensor):
            raise TypeError(f"{name}(): argument '{position}' (position {k}) must be Tensor, not {class_name(x)}")
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        if name not in _OF_NUMBERS:
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {class_name(a)}")
        from .creation import scalar_tensor
        a = scalar_tensor(a, dtype=NUMBERS[type(a)].dtype if isinstance(a, int) else dt.complex_of(dt.get_default_dtype()) if isinstance(a, complex) else None)
    return _plain_number(a), _plain_number(b)


def _plain_number(x):
    """A Tensor as it is, a number as a plain Python number."""
    return x if isinstance(x, Tensor) else plain_number(x)


def conj(xp, x):
    return xp.conj(x) if x.dtype.kind == "c" else x


def only(kernel: str, least: int = dt.BOOL, most: int = dt.COMPLEX) -> Callable[[dt.dtype], tuple]:
    """`promote` of an operation whose kernel in torch takes only these categories of dtypes."""
    def kinds(common: dt.dtype) -> tuple:
        if not least <= common.category <= most:
            raise not_implemented(kernel, common)
        return common, common
    return kinds


def binary(name: str, kernel, grads, *, numbers=(), promote="arith", names=(), inplace=True, torch_name=None, real=False, ufunc=None, kind=Rounded):
    """Publish `torch.name(input, other)` with its method, in-place and out= forms; `numbers`: which of the two may be a number."""
    op = kind(name, kernel, promote=promote, grads=grads, torch_name=torch_name, real=real, ufunc=ufunc)
    plain = PLAIN if "other" in numbers else ()

    def f(input, other):
        if not isinstance(input, Fields) or not (isinstance(other, Fields) or other.__class__ in plain):
            input, other = operands(name, input, other, numbers)
        return apply(op, (input, other))
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"torch.{name}(input, other): elementwise, broadcasting, with type promotion."
    kinds = ["Tensor | float" if which in numbers else "Tensor" for which in ("input", "other")]
    f.__annotations__ = {"input": kinds[0], "other": kinds[1], "return": "Tensor"}
    public(inplace=inplace, out=True, names=names)(f)
    return f


ADD = Rounded("add", lambda xp, x, y: xp.add(x, y), grads=(lambda xp, g: g, lambda xp, g: g), ufunc=np.add)
SUB = Rounded("sub", lambda xp, x, y: xp.subtract(x, y), grads=(lambda xp, g: g, lambda xp, g: -g), ufunc=np.subtract)
MUL = Elementwise("mul", lambda xp, x, y: xp.multiply(x, y), ufunc=np.multiply,
                  grads=(lambda xp, g, y: g * conj(xp, y), lambda xp, g, x: g * conj(xp, x)))
DIV = Quotient("div", lambda xp, x, y: xp.divide(x, y), promote="float", ufunc=np.divide,
                  grads=(lambda xp, g, y: g / conj(xp, y), lambda xp, g, x, y, plan: -g * conj(xp, over_twice(xp, x, y, plan))))


def fused(xp, a, b, c):
    """a * b + c, in float32 rounded once as torch's compiler has it: XLA's does so too, NumPy needs the wider type."""
    if xp is not np or a.dtype != np.float32:
        return a * b + c
    return (np.multiply(a, b, dtype=np.float64) + c).astype(np.float32)


_ADD_SCALED = Scaled("add_scaled", lambda xp, x, y, a: fused(xp, y, a, x), grads=(lambda xp, g: g, lambda xp, g, a: g * conj(xp, a), None),
                          torch_name="AddBackward0")
_SUB_SCALED = Scaled("sub_scaled", lambda xp, x, y, a: fused(xp, y, -a, x), grads=(lambda xp, g: g, lambda xp, g, a: -g * conj(xp, a), None),
                          torch_name="SubBackward0")
_ADD_SCALED.frees = _SUB_SCALED.frees = False  # they save a number, which is never freed


_ONE = 1  # alpha unless it is given: to ask whether it is this very object takes the least time


def _scaled(plain, op, input, other, alpha) -> Tensor:
    """input + alpha * other: alpha takes the type of the result, which the tensors alone make."""
    if alpha.__class__ is float and isinstance(input, Tensor) and input._value.aval.dtype.category == dt.FLOAT:
        kind = other._value.aval.dtype.category if isinstance(other, Tensor) else NUMBERS[other.__class__].dtype.category
        if kind <= dt.FLOAT:  # most are
            return apply(plain, (input, other)) if alpha == 1 else apply(op, (input, other, alpha))
    alpha = factor(alpha)
    result, alphas = common_dtype(input, other), aval_of(alpha).dtype.category
    kind = result.category
    if alphas == dt.BOOL != kind:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if kind < dt.FLOAT <= alphas:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if kind < dt.COMPLEX == alphas:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, Tensor):
        return apply(op, (input, other, alpha.to(result)))
    return apply(plain, (input, other)) if alpha == 1 else apply(op, (input, other, bool(alpha) if kind == dt.BOOL else alpha))


def _no_bool_sub(a, b):
    first = a.dtype is dt.bool_ if isinstance(a, Tensor) else a.__class__ is bool
    second = b.dtype is dt.bool_ if isinstance(b, Tensor) else b.__class__ is bool
    if first and second:
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
                           "operator instead.")
    if first or second:
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
                           "use the `~` or `logical_not()` operator instead.")


@public(inplace=True, out=True)
def add(input: Tensor | float, other, *, alpha=1) -> Tensor:
    """input + alpha * other."""
    if not isinstance(input, Fields) or not (isinstance(other, Fields) or other.__class__ in PLAIN):
        input, other = operands("add", input, other)
    return apply(ADD, (input, other)) if alpha is _ONE else _scaled(ADD, _ADD_SCALED, input, other, alpha)


@public(inplace=True, out=True, names=("subtract",))
def sub(input: Tensor | float, other, *, alpha=1) -> Tensor:
    """input - alpha * other."""
    if not isinstance(input, Fields) or not (isinstance(other, Fields) or other.__class__ in PLAIN):
        input, other = operands("sub", input, other)
    _no_bool_sub(input, other)
    return apply(SUB, (input, other)) if alpha is _ONE else _scaled(SUB, _SUB_SCALED, input, other, alpha)


RSUB = Rounded("rsub", lambda xp, x, y: xp.subtract(y, x), grads=(lambda xp, g: -g, lambda xp, g: g), torch_name="RsubBackward1")


def number_minus(number, x) -> Tensor:
    """number - x: torch's graph calls it the reverse of a subtraction."""
    if isinstance(number, Tensor):
        return sub(number, x)
    _no_bool_sub(number, x)
    return apply(RSUB, (x, number))


number_minus.__name__ = "sub"


def number_over(number, x) -> Tensor:
    """number / x: torch multiplies by the reciprocal."""
    return div(number, x) if isinstance(number, Tensor) else x.reciprocal() * number


number_over.__name__ = "div"


@public(method=False)
def rsub(input, other, *, alpha=1) -> Tensor:
    """other - alpha * input."""
    input, other = operands("rsub", input, other, ("other",))
    return sub(other, input, alpha=alpha)


@public(inplace=True, out=True, names=("multiply",))
def mul(input: Tensor | float, other) -> Tensor:
    """input * other."""
    if not isinstance(input, Fields) or not (isinstance(other, Fields) or other.__class__ in PLAIN):
        input, other = operands("mul", input, other)
    return apply(MUL, (input, other))


@public(inplace=True, out=True, names=("divide",))
def div(input: Tensor | float, other, *, rounding_mode: str | None = None) -> Tensor:
    """input / other; rounding_mode 'floor' or 'trunc' rounds the quotient and keeps integer types."""
    if not isinstance(input, Fields) or not (isinstance(other, Fields) or other.__class__ in PLAIN):
        input, other = operands("div", input, other)
    if rounding_mode is None:
        return apply(DIV, (input, other))
    if rounding_mode == "floor":
        return floored(input, other)
    if rounding_mode == "trunc":
        _no_int_zero(input, other)
        return apply(_TRUNC_DIV if isinstance(other, Tensor) and other.ndim else _TRUNC_DIV_BY_NUMBER, (input, other))
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@public(inplace=True, out=True)
def true_divide(input: Tensor | float, other) -> Tensor:
    """input / other."""
    return div(input, other)


def _trunc_div(xp, x, y):
    if x.dtype.kind in "iu":
        y = xp.where(y == 0, xp.ones_like(y), y)
        q = x // y
        return q + ((x - q * y != 0) & ((x < 0) != (y < 0))).astype(q.dtype) if x.dtype.kind == "i" else q
    return xp.trunc(stepped(xp, x / y))  # torch rounds a quotient of 16 bits before it cuts it


@in_blocks
def _floor_div(xp, x, y):
    if x.dtype.kind in "iu":
        return x // choose(xp, y == 0, xp.ones_like(y), y)
    # floor(x / y) is off by one where x / y rounds up to an integer; go through the exact remainder as torch does
    mod = exact_fmod(xp, x, y)
    q = stepped(xp, stepped(xp, x - mod) / y)
    q = stepped(xp, choose(xp, (mod != 0) & ((y < 0) != (mod < 0)), q - 1, q))
    near = xp.floor(q)
    near = choose(xp, q - near > 0.5, near + 1, near)
    near = choose(xp, q == 0, xp.copysign(xp.zeros_like(x), x / y), near)
    return choose(xp, y == 0, x / y, near)


def _zero(xp, g):
    return xp.zeros_like(g)


_TRUNC_DIV = Quotient("div_trunc", _trunc_div, promote=only("div_trunc_cpu", dt.INT, dt.FLOAT), grads=(_zero, _zero))
_TRUNC_DIV.steps = True
_TRUNC_DIV_BY_NUMBER = Quotient("div_trunc_by_number", _trunc_div, promote=only("div_trunc_cpu", dt.INT, dt.FLOAT), grads=(_zero, _zero))
_FLOOR_DIV = Quotient("floor_divide", _floor_div, promote=only("div_floor_cpu", dt.INT, dt.FLOAT), grads=(_zero, _zero))
_FLOOR_DIV.steps = True
_FLOOR_DIV_BY_NUMBER = Quotient("floor_divide_by_number", _floor_div, promote=only("div_floor_cpu", dt.INT, dt.FLOAT), grads=(_zero, _zero),
                                  torch_name=_FLOOR_DIV.torch_name)


def _no_int_zero(a, b):
    """Integer division by a literal zero fails at once, as in torch."""
    integral = all(not isinstance(x, (float, complex)) and (not isinstance(x, Tensor) or x.dtype.category < dt.FLOAT) for x in (a, b))
    if not integral or all(isinstance(x, bool) or isinstance(x, Tensor) and x.dtype is dt.bool_ for x in (a, b)):  # of bools the kernel is refused first
        return
    if isinstance(a, Tensor) and a.dtype is not dt.bool_ and (a.ndim or not isinstance(b, Tensor)):  # in whose type a number is taken: 256 is 0 in 8 bits
        bits = 8 * a.dtype.itemsize
        if not isinstance(b, Tensor):
            b = b % 2 ** bits if -2**63 <= b < 2**63 else b
        elif not b.ndim and 8 * b.dtype.itemsize > bits:
            b = b.to(a.dtype)
    if isinstance(b, Tensor):
        array = b._current().array
        if isinstance(array, np.ndarray) and array.size and not array.all() and not (isinstance(a, Tensor) and not a.numel()):
            raise RuntimeError("ZeroDivisionError")
        if array is None or not isinstance(array, np.ndarray):
            from .._core import program
            if array is not program.META_ARRAY and not program.is_tracer(array):
                ok = apply(_ALL_NONZERO, (b,))
                program.check(ok._value, lambda: RuntimeError("ZeroDivisionError"))
    elif b == 0 and a.numel():
        raise RuntimeError("ZeroDivisionError")


_ALL_NONZERO = Op("all_nonzero", lambda xp, x: xp.all(x != 0), shape=lambda a: ((), dt.bool_), vjp=False)


def floored(input: Tensor | float, other) -> Tensor:
    """floor(input / other), elementwise; its gradient is zero."""
    input, other = operands("floor_divide", input, other)
    _no_int_zero(input, other)
    by_number = not (isinstance(other, Tensor) and other.ndim) and isinstance(input, Tensor) and input.dtype in NARROW
    return apply(_FLOOR_DIV_BY_NUMBER if by_number else _FLOOR_DIV, (input, other))


@public(inplace=True, out=True)
def floor_divide(input: Tensor | float, other) -> Tensor:
    """floor(input / other), elementwise."""
    return underived("floor_divide", floored(input, other), input, other)


def _remainder(xp, x, y):
    if x.dtype.kind in "iu":
        return xp.remainder(x, xp.where(y == 0, xp.ones_like(y), y))
    mod = exact_fmod(xp, x, y)
    return choose(xp, (mod != 0) & ((y < 0) != (mod < 0)), mod + y, mod)


def _fmod(xp, x, y):
    if x.dtype.kind in "iu":
        return xp.fmod(x, xp.where(y == 0, xp.ones_like(y), y))
    return exact_fmod(xp, x, y)


_REMAINDER = Rounded("remainder", _remainder, promote=only("remainder_cpu", dt.INT, dt.FLOAT), grads=(lambda xp, g: g, lambda xp, g, x, y: -g * _floor_div(xp, x, y)))
_FMOD = Rounded("fmod", _fmod, promote=only("fmod_cpu", dt.INT, dt.FLOAT), grads=(lambda xp, g: g, lambda xp, g, x, y: -g * xp.trunc(x / y)))


@public(inplace=True, out=True)
def remainder(input: Tensor | float, other) -> Tensor:
    """input - floor(input / other) * other: the sign of other, as Python's %."""
    input, other = operands("remainder", input, other)
    _no_int_zero(input, other)
    return apply(_REMAINDER, (input, other))


@public(inplace=True, out=True)
def fmod(input, other) -> Tensor:
    """The remainder with the sign of input, as C's fmod."""
    input, other = operands("fmod", input, other, ("other",))
    _no_int_zero(input, other)
    return apply(_FMOD, (input, other))


# -- powers --------------------------------------------------------------------------------------------------------------


def _pow_kernel(xp, x, y):
    if x.dtype.kind in "iu":
        below = y < 0  # a power of 1 or -1, or nothing
        return xp.power(x, xp.where(below, y & 1, y)) * xp.where(below, abs(x) == 1, True).astype(x.dtype)
    r = power(xp, x, y)
    if xp is not np and r.dtype.kind == "c":  # XLA goes through log(0)
        r = xp.where((x == 0) & (y.real > 0), 0, r)
    return r


def _exponent_vjp(xp, g, x, y, out):
    flat = (x == 0) & (y.real >= 0)  # 0 ** y is constant there
    return g * conj(xp, choose(xp, flat, xp.zeros_like(out), out * xp.log(choose(xp, flat, xp.ones_like(x), x))))


def _pow_kind(common: dt.dtype) -> tuple:
    if common is dt.bool_:
        raise not_implemented("pow", dt.bool_)
    return common, common


_POW = Rounded("pow", _pow_kernel, promote=_pow_kind, torch_name="PowBackward1", grads=(
    lambda xp, g, x, y: g * conj(xp, choose(xp, y == 0, xp.zeros_like(x), y * power(xp, x, choose(xp, y == 0, xp.ones_like(y), y) - 1))),
    lambda xp, g, x, y, out: _exponent_vjp(xp, g, x, y, out)))

SQUARE_CHAIN = {2: lambda xp, x: x * x, 3: lambda xp, x: x * x * x, 4: lambda xp, x: (x * x) * (x * x)}


def _static_pow(xp, x, n):
    """x ** n for an exponent that is part of the program: products and roots where they are exact."""
    if x.dtype.kind in "iu":
        return xp.power(x, np.asarray(n, x.dtype))
    if n in SQUARE_CHAIN:
        return SQUARE_CHAIN[n](xp, x)
    if n == 0.5:
        return xp.sqrt(x)
    if n == -0.5:
        return 1 / xp.sqrt(x)
    if n == -1:
        return 1 / x
    if n == -2:
        return 1 / (x * x)
    if n == 1:
        return +x
    if n == 0:
        return xp.ones_like(x)
    return power(xp, x, np.asarray(n, x.dtype))


_STATIC_POW = Elementwise("pow_scalar", _static_pow, torch_name="PowBackward0", grads=(
    lambda xp, g, x, n: xp.zeros_like(x) if n == 0 else g * conj(xp, np.asarray(n, x.dtype) * _static_pow(xp, x, n - 1)),))
_CHECKED_BASES = frozenset({dt.bool_, dt.float16, dt.bfloat16, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64})
STATIC_EXPONENTS = frozenset({0, 1, 2, 3, 4, 0.5, -0.5, -1, -2, 1.5})


def _checked_exponent(dtype: dt.dtype, exponent):
    """A number that integers, bools or 16-bit floats are raised to, which has to be one of them itself."""
    if dtype.category <= dt.INT and isinstance(exponent, int):
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return held(exponent, dtype) if dtype.category == dt.INT else exponent
    return held(exponent, dtype) if dtype.category == dt.FLOAT and exponent.__class__ is not complex else exponent


@public(inplace=True, out=True)
def pow(input: Tensor | float, exponent) -> Tensor:
    """input ** exponent, elementwise."""
    input, exponent = operands("pow", input, exponent)
    if not isinstance(exponent, Tensor):
        if input.dtype in _CHECKED_BASES:
            exponent = _checked_exponent(input.dtype, exponent)
            if input.dtype is dt.bool_ and exponent.__class__ is bool:
                return input.clone() if exponent else F["ones_like"](input)
        if not isinstance(exponent, (complex, bool)) and exponent in STATIC_EXPONENTS:
            if isinstance(exponent, float) and input.dtype.category < dt.FLOAT:
                input = input.to(dt.get_default_dtype())
            if input.dtype is dt.bool_ and isinstance(exponent, int):
                input = input.to(dt.int64)
            n = int(exponent) if exponent == int(exponent) else exponent
            return apply(_STATIC_POW, (input,), (n,))
    made = apply(_POW, (input, exponent))
    return made if isinstance(input, Tensor) else named(made, "PowBackward2")


@public()
def float_power(input: Tensor | float, exponent, *, out: Tensor | None = None) -> Tensor:
    """input ** exponent in float64 (complex128 for complex arguments)."""
    parts = [x for x in (input, exponent) if isinstance(x, Tensor)]
    is_complex = any(p.dtype.is_complex for p in parts) or any(isinstance(x, complex) for x in (input, exponent))
    if not parts:
        raise combination("float_power", (input, exponent), {})
    to, to_number = (dt.complex128, complex) if is_complex else (dt.float64, float)
    if out is not None and isinstance(out, Tensor) and out.dtype is not to:
        raise RuntimeError(f"the output given to float_power has dtype {out.dtype.short} but the operation's result requires dtype {to.short}")
    made = pow(*(x.to(to) if isinstance(x, Tensor) else to_number(plain_number(x)) for x in (input, exponent)))
    return made if out is None else fill_out(out, made)


def _float_power_(self, exponent) -> Tensor:
    """self = self ** exponent, of a tensor that can hold it."""
    self._check_write()
    made = float_power(self, exponent)
    if made.dtype is not self.dtype:
        raise RuntimeError(f"the base given to float_power_ has dtype {self.dtype.short} but the operation's result requires dtype {made.dtype.short}")
    return write_into(self, made)


Tensor.float_power_ = _float_power_

# -- comparisons of size ------------------------------------------------------------------------------------------------------


class Compared(Rounded):
    """Which of two is the larger one decides whose gradient it is."""

    compares = True


def _share_ties(xp, g, mine, other, loses):
    """Halves where both are equal; both take all of it where one is NaN, since neither loses then."""
    return choose(xp, mine == other, g * np.asarray(0.5, g.dtype), choose(xp, loses, xp.zeros((), g.dtype), g))


maximum = binary("maximum", lambda xp, x, y: xp.maximum(x, y), inplace=False, grads=(
    lambda xp, g, x, y: _share_ties(xp, g, x, y, x < y), lambda xp, g, x, y: _share_ties(xp, g, y, x, y < x)), kind=Compared, real="maximum not implemented for complex tensors.")
minimum = binary("minimum", lambda xp, x, y: xp.minimum(x, y), inplace=False, grads=(
    lambda xp, g, x, y: _share_ties(xp, g, x, y, x > y), lambda xp, g, x, y: _share_ties(xp, g, y, x, y > x)), kind=Compared, real="minimum not implemented for complex tensors.")
fmax = binary("fmax", lambda xp, x, y: xp.fmax(x, y), inplace=False, grads=(
    lambda xp, g, x, y: choose(xp, (x >= y) | (y != y), g, xp.zeros((), g.dtype)),
    lambda xp, g, x, y: choose(xp, ~((x >= y) | (y != y)), g, xp.zeros((), g.dtype))), kind=Compared, real="fmax not implemented for complex tensors.")
fmin = binary("fmin", lambda xp, x, y: xp.fmin(x, y), inplace=False, grads=(
    lambda xp, g, x, y: choose(xp, (x <= y) | (y != y), g, xp.zeros((), g.dtype)),
    lambda xp, g, x, y: choose(xp, ~((x <= y) | (y != y)), g, xp.zeros((), g.dtype))), kind=Compared, real="fmin not implemented for complex tensors.")


def _over_squares(xp, g, x, y):
    """g / (x^2 + y^2); zero at the origin."""
    squares = x * x + y * y
    return choose(xp, squares == 0, xp.zeros((), g.dtype), g / choose(xp, squares == 0, xp.ones((), squares.dtype), squares))


atan2 = binary("atan2", lambda xp, x, y: arctan2(xp, x, y), promote="float", names=("arctan2",), grads=(
    lambda xp, g, x, y: _over_squares(xp, g, x, y) * y, lambda xp, g, x, y: _over_squares(xp, g, x, y) * -x), real=True)
hypot = binary("hypot", lambda xp, x, y: xp.hypot(x, y), promote=only("hypot_cpu", dt.FLOAT, dt.FLOAT), grads=(
    lambda xp, g, x, out: g * x / out, lambda xp, g, y, out: g * y / out))
copysign = binary("copysign", lambda xp, x, y: xp.copysign(x, y), promote="float", numbers=("other",), grads=(
    lambda xp, g, x, out: choose(xp, x == 0, xp.zeros((), g.dtype), g * out / x), _zero), real=True)
nextafter = binary("nextafter", lambda xp, x, y: xp.nextafter(x, y), promote=only("nextafter_cpu", dt.FLOAT, dt.FLOAT), grads=(
    lambda xp, g, x, y: choose(xp, x == y, xp.zeros((), g.dtype), g), _zero))
OPS["nextafter"].steps = True


def _xlogy(xp, x, y, rounded=lambda xp, x: x):
    none = (x == 0) & (y == y)
    return xp.where(none, xp.zeros_like(x), x * rounded(xp, xp.log(xp.where(none, xp.ones_like(y), y))))


xlogy = binary("xlogy", _xlogy, kind=Stepped, promote="float", numbers=("input", "other"), grads=(
    lambda xp, g, x, y: _xlogy(xp, g, xp.where((x == 0) & (y <= 0), xp.ones_like(y), y)),
    lambda xp, g, x, y: g * x / y), real=True)


_HEAVISIDE = Elementwise("heaviside", lambda xp, x, y: xp.where(x == 0, y, (x > 0).astype(x.dtype)), grads=(Underivable("derivative for aten::heaviside is not implemented"),) * 2,
                         torch_name="NotImplemented", real="heaviside is not yet implemented for complex tensors.")


@public(inplace=True, out=True)
def heaviside(input, values: Tensor) -> Tensor:
    """0 where input is negative, 1 where it is positive, values where it is zero."""
    for x, name, position in ((input, "input", 1), (values, "values", 2)):
        if not isinstance(x, Tensor):
            raise TypeError(f"heaviside(): argument '{name}' (position {position}) must be Tensor, not {class_name(x)}")
    if input.dtype is not values.dtype and not (input.dtype.is_complex or values.dtype.is_complex):
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return apply(_HEAVISIDE, (input, values))


def _number(x):
    return x if isinstance(x, Tensor) else _plain_number(number(x))


_ADDCMUL = Elementwise("addcmul", lambda xp, x, a, b, v: x + v * a * b, grads=(
    lambda xp, g: g, lambda xp, g, b, v: g * conj(xp, v * b), lambda xp, g, a, v: g * conj(xp, v * a), None))
_ADDCDIV = Elementwise("addcdiv", lambda xp, x, a, b, v: x + v * (a / b), grads=(
    lambda xp, g: g, lambda xp, g, b, v: g * conj(xp, v / b), lambda xp, g, a, b, v: -g * conj(xp, v * (a / b / b)), None))


@in_blocks
def _lerp(xp, x, y, w):
    """From the nearer end, so that weights 0 and 1 give the ends."""
    if xp is np and not w.ndim:
        return x + w * (y - x) if abs(w) < 0.5 else y - (y - x) * (1 - w)
    return choose(xp, abs(w) < 0.5, x + w * (y - x), y - (y - x) * (1 - w))


_LERP_GRADS = (lambda xp, g, w: g * conj(xp, 1 - w), lambda xp, g, w: g * conj(xp, w))
_LERP = Elementwise("lerp", _lerp, torch_name="LerpBackward1", grads=(*_LERP_GRADS, lambda xp, g, x, y: g * conj(xp, y - x)))
_LERP_BY_NUMBER = Elementwise("lerp_by_number", _lerp, torch_name="LerpBackward0", grads=(*_LERP_GRADS, None))
_LERP_BY_NUMBER.frees = False


def _as_result(value, tensors):
    """The factor of addcmul and addcdiv in the type of the result, which the tensors alone make; None where that is bool."""
    value, common = factor(value), common_dtype(*tensors)
    kind = common.category
    if dt.BOOL < kind < dt.COMPLEX == aval_of(value).dtype.category:
        name = "int" if common is dt.int32 else f"{common.np.name}_t" if kind == dt.INT else "double" if common is dt.float64 else "float"
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    if kind == dt.BOOL:
        return None
    if isinstance(value, Tensor):  # beside 16-bit floats the number is not rounded
        return value.to(dt.float32 if common in NARROW and any(t.ndim for t in tensors) else common)
    return int(value) if kind == dt.INT else value


@public(inplace=True, out=True)
def addcmul(input, tensor1: Tensor, tensor2: Tensor, *, value=1) -> Tensor:
    """input + value * tensor1 * tensor2."""
    need_tensor(input, "addcmul", "'input' (position 1)")
    need_tensor(tensor1, "addcmul", "'tensor1' (position 2)")
    need_tensor(tensor2, "addcmul", "'tensor2' (position 3)")
    value = _as_result(value, (input, tensor1, tensor2))
    if value is None:
        raise not_implemented("addcmul_cpu_out", dt.bool_)
    return apply(_ADDCMUL, (input, tensor1, tensor2, value))


@public(inplace=True, out=True)
def addcdiv(input, tensor1: Tensor, tensor2: Tensor, *, value=1) -> Tensor:
    """input + value * tensor1 / tensor2."""
    need_tensor(input, "addcdiv", "'input' (position 1)")
    if all(t.dtype.category < dt.FLOAT for t in (tensor1, tensor2)):
        raise RuntimeError("Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
                           "perform a true division of tensor1 and tensor2.")
    return apply(_ADDCDIV, (input, tensor1, tensor2, _as_result(value, (input, tensor1, tensor2))))


@public(inplace=True, out=True)
def lerp(input, end: Tensor, weight) -> Tensor:
    """input + weight * (end - input)."""
    if input.dtype is not end.dtype:
        raise RuntimeError(f"expected dtype {cpp_type(input.dtype.np)} for `end` but got dtype {cpp_type(end.dtype.np)}")
    if input.dtype.category < dt.FLOAT and not (isinstance(weight, Tensor) and weight.ndim and weight.dtype is not input.dtype):
        raise not_implemented(f"lerp_kernel_{'tensor' if isinstance(weight, Tensor) else 'scalar'}", input.dtype)
    if isinstance(weight, Tensor):
        if weight.dtype is not input.dtype and weight.ndim:
            raise RuntimeError(f"expected dtype {cpp_type(input.dtype.np)} for `weight` but got dtype {cpp_type(weight.dtype.np)}")
        return apply(_LERP, (input, end, weight))
    return apply(_LERP_BY_NUMBER, (input, end, _number(weight)))
