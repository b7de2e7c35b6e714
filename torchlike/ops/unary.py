"""Unary functions of one tensor, elementwise: exponentials, trigonometry, rounding, special functions."""
from __future__ import annotations

import math

import numpy as np
from jax import lax
from jax.scipy import special as jax_special

from .._arguments import as_int, real
from .._core import dtype as dt
from .._core.errors import not_implemented
from .._core.named_calls import named_call
from .._core.numpy_erf import erf as numpy_erf
from .._core.numpy_erf import erfinv as numpy_erfinv
from .._core.registry import Elementwise
from .._public import public
from .._tensor import Tensor, apply
from . import exponentials, logarithms
from .basic import direction, sign_of
from .blocks import in_blocks
from .choosing import choose
from .circular import cosine, polynomial, reciprocal_root, sine, tangent
from .complex_parts import joined
from .elements import largest_of
from .inverse_circular import arccos, arcsin, arctan
from .limits import at_least
from .pointwise import conj
from .quotients import over


def special(xp):
    """The module of special functions that goes with an array library. SciPy's is imported at first use: it takes as long as
    all of torchlike's own modules."""
    if xp is not np:
        return jax_special
    import scipy.special
    return scipy.special


def unary(name: str, kernel, grad=None, *, promote="float", names=(), torch_name=None, real=False, inplace=True, out=True):
    """Publish torch.name(input) with method, in-place and out= forms. grad: `(xp, g, x?, out?)`."""
    op = Elementwise(name, kernel, promote=promote, grads=None if grad is None else (grad,), torch_name=torch_name, real=real)

    def f(input) -> Tensor:
        return apply(op, (input,))
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"torch.{name}(input), elementwise."
    return public(inplace=inplace, out=out, names=names)(f)


def _as_power(common: dt.dtype):
    return (dt.int64, dt.int64) if common is dt.bool_ else (common, common)


exp = unary("exp", lambda xp, x: xp.exp(x), lambda xp, g, out: g * conj(xp, out))
exp2 = unary("exp2", named_call("exp2", logarithms.exp2), lambda xp, g, out: g * conj(xp, out) * np.asarray(math.log(2), g.dtype))
expm1 = unary("expm1", named_call("expm1", exponentials.expm1), lambda xp, g, out: g * conj(xp, out + 1))
log = unary("log", lambda xp, x: xp.log(x), lambda xp, g, x: g / conj(xp, x))
log2 = unary("log2", named_call("log2", logarithms.log2), lambda xp, g, x: g / conj(xp, x * np.asarray(math.log(2), x.dtype)))
log10 = unary("log10", named_call("log10", logarithms.log10), lambda xp, g, x: g / conj(xp, x * np.asarray(math.log(10), x.dtype)))


def _log1p(xp, x):
    if x.dtype.kind != "c":
        return exponentials.log1p(xp, x)
    a, b = x.real, x.imag
    with np.errstate(over="ignore"):
        beyond = a * (2 + a) + b * b  # |1 + x| ** 2 - 1
    near = abs(beyond) < 0.5  # where 1 + x would lose what makes its logarithm
    real = xp.where(near, 0.5 * xp.log1p(xp.where(near, beyond, 0)), xp.log(xp.hypot(1 + a, b)))
    angle = xp.arctan2(b, 1 + a)
    return joined(xp, real, angle, x.dtype)


log1p = unary("log1p", named_call("log1p", _log1p), lambda xp, g, x: g / conj(xp, x + 1), torch_name="Log1PBackward0")
sqrt = unary("sqrt", lambda xp, x: xp.sqrt(x), lambda xp, g, out: g / conj(xp, 2 * out))
rsqrt = unary("rsqrt", reciprocal_root, lambda xp, g, out: g * conj(xp, np.asarray(-0.5, out.dtype) * out * out * out))
reciprocal = unary("reciprocal", lambda xp, x: 1 / x, lambda xp, g, out: -g * conj(xp, out * out))
square = unary("square", lambda xp, x: x * x, lambda xp, g, x: g * conj(xp, 2 * x), promote=_as_power, torch_name="PowBackward0")
sin = unary("sin", sine, lambda xp, g, x: g * conj(xp, cosine(xp, x)))
cos = unary("cos", cosine, lambda xp, g, x: -g * conj(xp, sine(xp, x)))
tan = unary("tan", tangent, lambda xp, g, out: g * conj(xp, 1 + out * out))
asin = unary("asin", arcsin, lambda xp, g, x: g * conj(xp, 1 / xp.sqrt(1 - x * x)), names=("arcsin",))
acos = unary("acos", arccos, lambda xp, g, x: -g * conj(xp, 1 / xp.sqrt(1 - x * x)), names=("arccos",))
atan = unary("atan", arctan, lambda xp, g, x: g / conj(xp, 1 + x * x), names=("arctan",))
sinh = unary("sinh", named_call("sinh", exponentials.sinh), lambda xp, g, x: g * conj(xp, exponentials.cosh(xp, x)))
cosh = unary("cosh", named_call("cosh", exponentials.cosh), lambda xp, g, x: g * conj(xp, exponentials.sinh(xp, x)))


def _tanh(xp, x):
    """XLA's float32 tanh is up to 4 units wrong in its last place where it is near 1, and logarithms of 1 - tanh(x)**2 show it."""
    if xp is np or x.dtype != np.float32:
        return xp.tanh(x)
    size = xp.abs(x)
    return xp.where(size > 1, xp.copysign(1 - 2 / (xp.exp(2 * size) + 1), x), xp.tanh(x))


tanh = unary("tanh", named_call("tanh", _tanh), lambda xp, g, out: g * conj(xp, 1 - out * out))
asinh = unary("asinh", lambda xp, x: xp.arcsinh(x), lambda xp, g, x: g * conj(xp, 1 / xp.sqrt(x * x + 1)), names=("arcsinh",))


def _acosh_grad(xp, g, x):
    """Of complex numbers by two roots, whose product has the sign of acosh's branch."""
    return g * conj(xp, 1 / (xp.sqrt(x - 1) * xp.sqrt(x + 1) if x.dtype.kind == "c" else xp.sqrt(x * x - 1)))


acosh = unary("acosh", lambda xp, x: xp.arccosh(x), _acosh_grad, names=("arccosh",))
atanh = unary("atanh", exponentials.arctanh, lambda xp, g, x: g / conj(xp, 1 - x * x), names=("arctanh",))


def logistic(xp, x):
    """1 / (1 + exp(-x)); JAX's own, whose derivative does not overflow where the exponential does."""
    return 1 / (1 + xp.exp(-x)) if xp is np or x.dtype.kind == "c" else lax.logistic(x)


sigmoid = unary("sigmoid", logistic, lambda xp, g, out: g * conj(xp, out * (1 - out)))


def _zero(xp, g):
    return xp.zeros_like(g)


def _rounding(name, kernel, names=()):
    """Rounding keeps integers as they are."""
    def promote(common):
        if common is dt.bool_:
            raise not_implemented(f"{name}_vml_cpu", dt.bool_)
        if common.is_complex:
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        return common, common
    return unary(name, lambda xp, x: x if x.dtype.kind in "iu" else kernel(xp, x), _zero, promote=promote, names=names)


def _fraction_of(common: dt.dtype):
    if common.category != dt.FLOAT:
        raise not_implemented("frac_cpu", common)
    return common, common


floor = _rounding("floor", lambda xp, x: xp.floor(x))
ceil = _rounding("ceil", lambda xp, x: xp.ceil(x))
trunc = _rounding("trunc", lambda xp, x: xp.trunc(x), names=("fix",))
frac = unary("frac", lambda xp, x: x - xp.trunc(x), lambda xp, g: g, promote=_fraction_of)
_ROUND = Elementwise("round", lambda xp, x, decimals: x if x.dtype.kind in "iub" else _round(xp, x, decimals), grads=(_zero,))
_ROUND_TO = Elementwise("round_decimals", lambda xp, x, decimals: x if x.dtype.kind in "iub" else _round(xp, x, decimals), grads=(_zero,), torch_name="RoundBackward1")


def _round(xp, x, decimals):
    if decimals == 0:
        return xp.round(x)
    scale = np.asarray(10.0 ** abs(decimals), x.dtype)
    return over(xp, xp.round(x * scale), scale) if decimals > 0 else xp.round(over(xp, x, scale)) * scale


@public(inplace=True, out=True)
def round(input, *, decimals: int = 0) -> Tensor:
    """To the nearest integer (half to even), or to `decimals` places."""
    kind = input.dtype
    if kind.is_complex or kind is dt.bool_ or (decimals and kind.category < dt.FLOAT):
        raise not_implemented("round_cpu" if decimals else "round_vml_cpu", kind)
    return apply(_ROUND_TO if decimals else _ROUND, (input,), (as_int(decimals, "decimals", "round(): "),))


sign = unary("sign", sign_of, _zero, promote="arith", real=NotImplementedError(
    "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."))


def _sgn_grad(xp, g, x, out):
    """The part of g across the direction of x, which is what turns that direction."""
    if x.dtype.kind != "c":
        return xp.zeros_like(g)
    return xp.where(x == 0, 0, (g - (g * xp.conj(out)).real * out) / xp.where(x == 0, 1, xp.abs(x)))


sgn = unary("sgn", direction, _sgn_grad, promote="arith")
signbit = unary("signbit", lambda xp, x: xp.signbit(x) if x.dtype.kind not in "ub" else xp.zeros(x.shape, bool), promote="bool", real=True, inplace=False)
isnan = unary("isnan", lambda xp, x: xp.isnan(x) if x.dtype.kind not in "iub" else xp.zeros(x.shape, bool), promote="bool", inplace=False, out=False)
isinf = unary("isinf", lambda xp, x: xp.isinf(x) if x.dtype.kind not in "iub" else xp.zeros(x.shape, bool), promote="bool", inplace=False, out=False)
isfinite = unary("isfinite", lambda xp, x: xp.isfinite(x) if x.dtype.kind not in "iub" else xp.ones(x.shape, bool), promote="bool", inplace=False, out=False)
isposinf = unary("isposinf", lambda xp, x: x == np.inf if x.dtype.kind not in "iub" else xp.zeros(x.shape, bool), promote="bool",
                 real="isposinf does not support complex inputs.")
isneginf = unary("isneginf", lambda xp, x: x == -np.inf if x.dtype.kind not in "iub" else xp.zeros(x.shape, bool), promote="bool",
                 real="isneginf does not support complex inputs.")
isreal = unary("isreal", lambda xp, x: xp.isreal(x), promote="bool", inplace=False, out=False)


def _no_bool(common: dt.dtype):
    if common is dt.bool_:
        raise RuntimeError("Boolean inputs not supported for relu")
    return common, common


relu = unary("relu", lambda xp, x: at_least(xp, x, np.zeros((), x.dtype)), lambda xp, g, out: choose(xp, out != 0, g, xp.zeros((), g.dtype)),  # also at NaN
             promote=_no_bool, real=NotImplementedError("clamp is not supported for complex types"))
erf = unary("erf", named_call("erf", lambda xp, x: numpy_erf(x) if xp is np else special(xp).erf(x)),
            lambda xp, g, x: g * np.asarray(2 / math.sqrt(math.pi), g.dtype) * xp.exp(-x * x), real=True)
erfc = unary("erfc", lambda xp, x: special(xp).erfc(x), lambda xp, g, x: g * np.asarray(-2 / math.sqrt(math.pi), g.dtype) * xp.exp(-x * x), real=True)
erfinv = unary("erfinv", lambda xp, x: numpy_erfinv(x) if xp is np else choose(xp, x == 0, x, special(xp).erfinv(x)),
               lambda xp, g, out: g * np.asarray(math.sqrt(math.pi) / 2, g.dtype) * xp.exp(out * out), real=True)


def _lgamma(xp, x):
    made = xp.where(x == -np.inf, np.asarray(np.inf, x.dtype), special(xp).gammaln(x))
    return made if xp is np else xp.where((x == 1) | (x == 2), np.asarray(0, x.dtype), made)  # XLA's series only comes near


def _digamma(xp, x):
    return xp.where(x == 0, xp.copysign(np.asarray(np.inf, x.dtype), -x), special(xp).digamma(x))


_FEW = 256  # elements up to which SciPy's function is quicker than thirty steps
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)


@in_blocks
def trigamma(xp, x):
    """digamma's derivative, which XLA has only above 0 and scipy goes the long way to: by reflection, ten recurrences and the asymptotic series."""
    if xp is np and x.size < _FEW and (x > 0).all():
        return special(np).polygamma(1, x)
    if xp is np and x.dtype == np.float32:
        with np.errstate(all="ignore"):
            return trigamma(np, x.astype(np.float64)).astype(np.float32)
    low, pole = x < 0.5, (x <= 0) & (x == xp.floor(x)) & (x > -np.inf)
    z, total = xp.where(low, 1 - x, x), xp.zeros_like(x)
    for _ in range(10):
        total, z = total + 1 / (z * z), z + 1
    inverse = 1 / z
    total = total + inverse + inverse * inverse * (np.asarray(0.5, x.dtype) + inverse * polynomial(inverse * inverse, _BERNOULLI))
    if xp is np and not low.any():
        return total
    sine = xp.sin(np.asarray(math.pi, x.dtype) * (x - xp.round(x)))
    reflected = np.asarray(math.pi ** 2, x.dtype) / xp.where(low & ~pole, sine * sine, 1) - total
    return xp.where(pole, np.asarray(np.inf, x.dtype), xp.where(low, reflected, total))


lgamma = unary("lgamma", _lgamma, lambda xp, g, x: g * _digamma(xp, x), real=True)
digamma = unary("digamma", _digamma, lambda xp, g, x: g * trigamma(xp, x), real=True)
i0 = unary("i0", lambda xp, x: special(xp).i0(x), lambda xp, g, x: g * special(xp).i1(x), real=True)


def _sinc_slope(xp, x):
    pi = np.asarray(math.pi, x.dtype)
    return xp.where(x == 0, xp.zeros_like(x), (pi * x * xp.cos(pi * x) - xp.sin(pi * x)) / (pi * x * x))  # at 0 torch has no second derivative either


def _sinc(xp, x):
    y = math.pi * xp.where(x == 0, 1, x)  # jnp.sinc is 0 at infinity since jax 0.11, torch and NumPy have NaN there
    return xp.where(x == 0, 1, xp.sin(y) / y)


sinc = unary("sinc", _sinc, lambda xp, g, x: g * conj(xp, _sinc_slope(xp, x)))
deg2rad = unary("deg2rad", lambda xp, x: x * np.asarray(math.pi / 180, x.dtype), lambda xp, g: g * np.asarray(math.pi / 180, g.dtype),
               torch_name="Deg2RadBackward0", real="deg2rad is not supported for complex tensors.")
rad2deg = unary("rad2deg", lambda xp, x: x * np.asarray(180 / math.pi, x.dtype), lambda xp, g: g * np.asarray(180 / math.pi, g.dtype),
               torch_name="Rad2DegBackward0", real="rad2deg is not supported for complex tensors.")


def _logit_grad(xp, g, x, eps):
    """Zero where eps limits x; without eps there is none outside of [0, 1]."""
    low, high, rest = (0, 1, xp.full((), np.nan, g.dtype)) if eps is None else (eps, 1 - eps, xp.zeros((), g.dtype))
    return choose(xp, (x < low) | (x > high), rest, g / (x * (1 - x)))


_LOGIT = Elementwise("logit", lambda xp, x, eps: xp.log(_clipped(xp, x, eps) / (1 - _clipped(xp, x, eps))), promote="float", grads=(
    _logit_grad,))


def _clipped(xp, x, eps):
    return x if eps is None else xp.clip(x, np.asarray(eps, x.dtype), np.asarray(1 - eps, x.dtype))


@public(inplace=True, out=True)
def logit(input, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), with x limited to [eps, 1 - eps]."""
    if input.dtype.is_complex:
        raise not_implemented("logit_cpu", input.dtype)
    return apply(_LOGIT, (input,), (None if eps is None else real(eps, "logit", "eps", 2),))


_NAN_TO_NUM = Elementwise("nan_to_num", lambda xp, x, nan, pos, neg: _nan_to_num(xp, x, nan, pos, neg), grads=(
    lambda xp, g, x: choose(xp, xp.isfinite(x), g, xp.zeros_like(g)),))
_NAN_TO_NUM.compares = True


def _nan_to_num(xp, x, nan, pos, neg):
    if x.dtype.kind == "c":
        return joined(xp, *(xp.nan_to_num(part, nan=nan, posinf=pos, neginf=neg) for part in (x.real, x.imag)), x.dtype)
    if x.dtype.kind in "iub":
        return x
    if xp is np and np.isfinite(x).all():
        return +x
    if xp is np and x.dtype in (np.float32, np.float64):
        most, kind = np.finfo(x.dtype).max, x.dtype.type
        out = choose(np, x == x, x, kind(nan))
        for end, value in ((np.inf, most if pos is None else pos), (-np.inf, -most if neg is None else neg)):
            if (at := x == end).any():
                out = choose(np, at, kind(value), out)
        return out
    return xp.nan_to_num(x, nan=nan, posinf=pos, neginf=neg)


@public(inplace=True, out=True)
def nan_to_num(input, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and infinities replaced by numbers (0 and the type's limits by default)."""
    most = largest_of(input.dtype) if input.dtype in (dt.float16, dt.bfloat16) else None  # a kernel sees float32
    given = (nan, "nan", 0.0), (posinf, "posinf", most), (neginf, "neginf", most and -most)
    return apply(_NAN_TO_NUM, (input,), tuple([default if x is None else real(x, "nan_to_num", name, k) for k, (x, name, default) in enumerate(given, 2)]))


_CONJ_PHYSICAL = Elementwise("conj_physical", lambda xp, x: xp.conj(x), grads=(lambda xp, g: conj(xp, g),))


def _angle(xp, x):
    return xp.angle(x) if x.dtype.kind == "c" else choose(xp, x != x, x, choose(xp, x < 0, np.asarray(math.pi, x.dtype), np.asarray(0, x.dtype)))


def _angle_grad(xp, g, x):
    if x.dtype.kind != "c":
        return xp.zeros_like(g)
    return xp.where(x == 0, 0, g * 1j * x / xp.where(x == 0, 1, xp.abs(x) ** 2))


_ANGLE = Elementwise("angle", _angle, grads=(_angle_grad,),
                     promote=lambda common: (common.to_real() if common.category >= dt.FLOAT else dt.get_default_dtype(),
                                             common if common.category >= dt.FLOAT else dt.get_default_dtype()))


@public(inplace=True, out=True)
def conj_physical(input) -> Tensor:
    """The complex conjugate, as a tensor of its own; real tensors are returned as they are."""
    return apply(_CONJ_PHYSICAL, (input,)) if input.dtype.is_complex else input


@public(out=True)
def angle(input) -> Tensor:
    """The argument of complex numbers, in radians."""
    return apply(_ANGLE, (input,))
