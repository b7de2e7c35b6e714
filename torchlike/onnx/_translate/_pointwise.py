"""Elementwise operations."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core.aval import result_dtype
from .._graph import Graph, Var
from ._table import NAMES, translates


def common(g: Graph, *xs: Any, floats: bool = False) -> list[Var]:
    """Operands in the type they are computed in. `floats`: integers become the result's type."""
    dtype = result_dtype(*[a for a in g.avals[:len(xs)] if a is not None])
    if floats and dtype.category < dt.FLOAT:
        dtype = g.results[0][1]
    return [x if x is None else g.cast(x, dtype) for x in xs]


def _binary(name: str, kind: str, floats: bool = False) -> None:
    @translates(name)
    def run(g: Graph, x: Any, y: Any) -> Var:
        x, y = common(g, x, y, floats=floats)
        if x.dtype is dt.bool_ and kind in ("Add", "Mul", "Max", "Min"):
            return g.op({"Add": "Or", "Max": "Or", "Mul": "And", "Min": "And"}[kind], x, y)
        if x.dtype is dt.bool_ and kind in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
            x, y = g.cast(x, dt.int32), g.cast(y, dt.int32)
        return g.op(kind, x, y)


for _name, _kind in (("add", "Add"), ("sub", "Sub"), ("mul", "Mul"), ("maximum", "Max"), ("minimum", "Min"), ("eq", "Equal"), ("lt", "Less"), ("gt", "Greater"),
                     ("le", "LessOrEqual"), ("ge", "GreaterOrEqual")):
    _binary(_name, _kind)
_binary("div", "Div", floats=True)
_binary("pow", "Pow")


@translates("ne")
def _ne(g: Graph, x: Any, y: Any) -> Var:
    return g.op("Not", g.op("Equal", *common(g, x, y)))


@translates("rsub")
def _rsub(g: Graph, x: Any, y: Any) -> Var:
    x, y = common(g, x, y)
    return g.op("Sub", y, x)


@translates("pow_scalar")
def _pow_scalar(g: Graph, x: Any, n: Any) -> Var:
    x, n = common(g, x, n)
    return g.op("Pow", x, n)


@translates("add_scaled", called="add")
def _add_scaled(g: Graph, x: Any, y: Any, a: Any) -> Var:
    x, y, a = (g.cast(v, g.results[0][1]) for v in (x, y, a))
    return g.op("Add", x, g.op("Mul", y, a))


@translates("sub_scaled", called="sub")
def _sub_scaled(g: Graph, x: Any, y: Any, a: Any) -> Var:
    x, y, a = (g.cast(v, g.results[0][1]) for v in (x, y, a))
    return g.op("Sub", x, g.op("Mul", y, a))


def _toward_zero(g: Graph, x: Var, dtype: dt.dtype) -> Var:
    return g.op("Mul", g.op("Sign", x), g.op("Floor", g.op("Abs", x))) if dtype.category >= dt.FLOAT else x


@translates("trunc")
def _trunc(g: Graph, x: Var) -> Var:
    return _toward_zero(g, x, x.dtype)


@translates("frac")
def _frac(g: Graph, x: Var) -> Var:
    return g.op("Sub", x, _toward_zero(g, x, x.dtype))


@translates("div_trunc", "div_trunc_by_number", called="div")
def _div_trunc(g: Graph, x: Any, y: Any) -> Var:
    x, y = common(g, x, y)
    return _toward_zero(g, g.op("Div", x, y), x.dtype)


@translates("floor_divide", "floor_divide_by_number")
def _floor_divide(g: Graph, x: Any, y: Any) -> Var:
    x, y = common(g, x, y)
    if x.dtype.category >= dt.FLOAT:
        return g.op("Floor", g.op("Div", x, y))
    return g.op("Div", g.op("Sub", x, g.op("Mod", x, y)), y)


@translates("remainder")
def _remainder(g: Graph, x: Any, y: Any) -> Var:
    x, y = common(g, x, y)
    if x.dtype.category < dt.FLOAT:
        return g.op("Mod", x, y)
    return g.op("Sub", x, g.op("Mul", g.op("Floor", g.op("Div", x, y)), y))


@translates("fmod")
def _fmod(g: Graph, x: Any, y: Any) -> Var:
    return g.op("Mod", *common(g, x, y), fmod=1)


@translates("fmax")
def _fmax(g: Graph, x: Any, y: Any) -> Var:
    return _ignoring_nan(g, "Max", x, y)


@translates("fmin")
def _fmin(g: Graph, x: Any, y: Any) -> Var:
    return _ignoring_nan(g, "Min", x, y)


def _ignoring_nan(g: Graph, kind: str, x: Any, y: Any) -> Var:
    x, y = common(g, x, y)
    if x.dtype.category < dt.FLOAT:
        return g.op(kind, x, y)
    return g.op("Where", g.op("IsNaN", x), y, g.op("Where", g.op("IsNaN", y), x, g.op(kind, x, y)))


@translates("atan2")
def _atan2(g: Graph, y: Any, x: Any) -> Var:
    y, x = common(g, y, x, floats=True)
    zero, pi = g.scalar(0, x.dtype), g.scalar(math.pi, x.dtype)
    angle = g.op("Atan", g.op("Div", y, x))
    turned = g.op("Where", g.op("Less", y, zero), g.op("Sub", angle, pi), g.op("Add", angle, pi))
    return g.op("Where", g.op("Less", x, zero), turned, angle)


@translates("hypot")
def _hypot(g: Graph, x: Any, y: Any) -> Var:
    x, y = common(g, x, y)
    return g.op("Sqrt", g.op("Add", g.op("Mul", x, x), g.op("Mul", y, y)))


@translates("logaddexp")
def _logaddexp(g: Graph, x: Any, y: Any) -> Var:
    x, y = common(g, x, y)
    return g.op("Add", x, g.op("Softplus", g.op("Sub", y, x)))


@translates("lerp", "lerp_by_number", called="lerp")
def _lerp(g: Graph, x: Any, y: Any, w: Any) -> Var:
    x, y, w = (g.cast(v, g.results[0][1]) for v in (x, y, w))
    return g.op("Add", x, g.op("Mul", w, g.op("Sub", y, x)))


@translates("addcmul")
def _addcmul(g: Graph, x: Any, a: Any, b: Any, v: Any) -> Var:
    x, a, b = (g.cast(t, g.results[0][1]) for t in (x, a, b))
    made = g.op("Mul", a, b)
    return g.op("Add", x, made if v == 1 else g.op("Mul", made, g.scalar(v, x.dtype)))


@translates("addcdiv")
def _addcdiv(g: Graph, x: Any, a: Any, b: Any, v: Any) -> Var:
    x, a, b = (g.cast(t, g.results[0][1]) for t in (x, a, b))
    made = g.op("Div", a, b)
    return g.op("Add", x, made if v == 1 else g.op("Mul", made, g.scalar(v, x.dtype)))


def _logical(name: str, kind: str) -> None:
    @translates(name)
    def run(g: Graph, *xs: Var) -> Var:
        return g.op(kind, *[g.cast(x, dt.bool_) for x in xs])


for _name, _kind in (("and", "And"), ("or", "Or"), ("xor", "Xor"), ("not", "Not")):
    _logical(f"logical_{_name}", _kind)


def _bitwise(name: str, kind: str) -> None:
    @translates(name)
    def run(g: Graph, *xs: Any) -> Var:
        xs = common(g, *xs)
        return g.op(kind if xs[0].dtype is dt.bool_ else "Bitwise" + kind, *xs)


for _name, _kind in (("and", "And"), ("or", "Or"), ("xor", "Xor"), ("not", "Not")):
    _bitwise(f"bitwise_{_name}", _kind)


# -- of one value ----------------------------------------------------------------------------------------------------------


def _unary(name: str, kind: str) -> None:
    @translates(name)
    def run(g: Graph, x: Any) -> Var:
        return g.op(kind, g.cast(x, g.results[0][1]))


for _name, _kind in (("neg", "Neg"), ("abs", "Abs"), ("exp", "Exp"), ("log", "Log"), ("sqrt", "Sqrt"), ("reciprocal", "Reciprocal"), ("sin", "Sin"),
                     ("cos", "Cos"), ("tan", "Tan"), ("asin", "Asin"), ("acos", "Acos"), ("atan", "Atan"), ("sinh", "Sinh"), ("cosh", "Cosh"),
                     ("tanh", "Tanh"), ("asinh", "Asinh"), ("acosh", "Acosh"), ("atanh", "Atanh"), ("sigmoid", "Sigmoid"), ("floor", "Floor"),
                     ("ceil", "Ceil"), ("sign", "Sign"), ("sgn", "Sign"), ("relu", "Relu"), ("erf", "Erf"), ("mish", "Mish"),
                     ("hardswish", "HardSwish")):
    _unary(_name, _kind)


def _built(name: str) -> Callable:
    """A translation written as a formula of x: `f(op, x, number)`."""
    def register(f: Callable) -> Callable:
        @translates(name)
        def run(g: Graph, x: Any, *rest: Any) -> Var:
            x = g.cast(x, g.results[0][1])
            return f(g.op, x, lambda v: g.scalar(v, x.dtype), *rest)
        return f
    return register


_built("square")(lambda op, x, n: op("Mul", x, x))
_built("rsqrt")(lambda op, x, n: op("Reciprocal", op("Sqrt", x)))
_built("exp2")(lambda op, x, n: op("Pow", n(2), x))
_built("expm1")(lambda op, x, n: op("Sub", op("Exp", x), n(1)))
_built("log1p")(lambda op, x, n: op("Log", op("Add", x, n(1))))
_built("log2")(lambda op, x, n: op("Div", op("Log", x), n(math.log(2))))
_built("log10")(lambda op, x, n: op("Div", op("Log", x), n(math.log(10))))
_built("erfc")(lambda op, x, n: op("Sub", n(1), op("Erf", x)))
_built("deg2rad")(lambda op, x, n: op("Mul", x, n(math.pi / 180)))
_built("rad2deg")(lambda op, x, n: op("Mul", x, n(180 / math.pi)))
_built("silu")(lambda op, x, n: op("Mul", x, op("Sigmoid", x)))
_built("log_sigmoid")(lambda op, x, n: op("Neg", op("Softplus", op("Neg", x))))
_built("hardsigmoid")(lambda op, x, n: op("HardSigmoid", x, alpha=1 / 6, beta=0.5))
_built("special_ndtr")(lambda op, x, n: op("Mul", op("Add", op("Erf", op("Mul", x, n(math.sqrt(0.5)))), n(1)), n(0.5)))


@translates("round", "round_decimals")
def _round(g: Graph, x: Var, decimals: int) -> Var:
    if decimals == 0:
        return g.op("Round", x) if x.dtype.category >= dt.FLOAT else x
    power = g.scalar(10.0 ** decimals, x.dtype)
    return g.op("Div", g.op("Round", g.op("Mul", x, power)), power)


@translates("logical_not")
def _not(g: Graph, x: Var) -> Var:
    return g.op("Not", g.cast(x, dt.bool_))


@translates("isnan")
def _isnan(g: Graph, x: Var) -> Var:
    return g.op("IsNaN", x)


@translates("isinf")
def _isinf(g: Graph, x: Var) -> Var:
    return g.op("IsInf", x)


@translates("isfinite")
def _isfinite(g: Graph, x: Var) -> Var:
    return g.op("Not", g.op("Or", g.op("IsInf", x), g.op("IsNaN", x)))


@translates("logit")
def _logit(g: Graph, x: Any, eps: Any) -> Var:
    x = g.cast(x, g.results[0][1])
    if eps is not None and eps >= 0:
        x = g.op("Clip", x, g.scalar(eps, g.results[0][1]), g.scalar(1 - eps, g.results[0][1]))
    return g.op("Log", g.op("Div", x, g.op("Sub", g.scalar(1.0, g.results[0][1]), x)))


@translates("xlogy")
def _xlogy(g: Graph, x: Any, y: Any) -> Var:
    x, y = common(g, x, y, floats=True)
    made = g.op("Where", g.op("Equal", x, g.scalar(0, x.dtype)), g.scalar(0, x.dtype), g.op("Mul", x, g.op("Log", y)))
    return g.op("Where", g.op("IsNaN", y), y, made)


@translates("heaviside")
def _heaviside(g: Graph, x: Any, at_zero: Any) -> Var:
    x, at_zero = common(g, x, at_zero)
    zero = g.scalar(0, x.dtype)
    return g.op("Where", g.op("Equal", x, zero), at_zero, g.cast(g.op("Greater", x, zero), x.dtype, dt.bool_))


@translates("isclose")
def _isclose(g: Graph, x: Any, y: Any, rtol: float, atol: float, nan: bool, kind: np.dtype, compare_only: bool) -> Var:
    if nan:
        return NotImplemented
    x, y = common(g, x, y)
    same = g.op("Equal", x, y)
    if compare_only:
        return same
    if x.dtype.category < dt.FLOAT:
        x, y = (g.cast(v, dt.from_numpy_dtype(kind)) for v in (x, y))
    off = g.op("Abs", g.op("Sub", x, y))
    room = g.op("Add", g.scalar(atol, x.dtype), g.op("Mul", g.scalar(rtol, x.dtype), g.op("Abs", y)))
    return g.op("Or", same, g.op("And", g.op("LessOrEqual", off, room), g.op("Not", g.op("IsInf", off))))


@translates("nan_to_num")
def _nan_to_num(g: Graph, x: Var, nan: Any, pos: Any, neg: Any) -> Var:
    info = dt.finfo(x.dtype) if hasattr(dt, "finfo") else np.finfo(x.dtype.np)
    made = g.op("Where", g.op("IsNaN", x), g.scalar(0.0 if nan is None else nan, x.dtype), x)
    made = g.op("Where", g.op("IsInf", x, detect_negative=0), g.scalar(float(info.max) if pos is None else pos, x.dtype), made)
    return g.op("Where", g.op("IsInf", x, detect_positive=0), g.scalar(float(info.min) if neg is None else neg, x.dtype), made)


@translates("clamp", "hardtanh")
def _clamp(g: Graph, x: Any, low: Any, high: Any) -> Var:
    dtype = g.results[0][1]
    x, low, high = (None if v is None else g.cast(v, dtype) for v in (x, low, high))
    if all(v is None or v.shape == () for v in (low, high)):
        return g.op("Clip", x, low, high)
    x = x if low is None else g.op("Max", x, low)
    return x if high is None else g.op("Min", x, high)


@translates("where")
def _where(g: Graph, c: Var, x: Any, y: Any) -> Var:
    return g.op("Where", g.cast(c, dt.bool_), g.cast(x, g.results[0][1]), g.cast(y, g.results[0][1]))


@translates("clone", "unread")
def _clone(g: Graph, x: Var) -> Var:
    return x


@translates("overwrite")
def _overwrite(g: Graph, old: Var, new: Var) -> Var:
    return new


@translates("to_copy", called="_to_copy")
def _to_copy(g: Graph, x: Any, dtype: dt.dtype) -> Var:
    return g.cast(x, dtype)


# -- activations -----------------------------------------------------------------------------------------------------------


@translates("gelu")
def _gelu(g: Graph, x: Var, tanh: bool) -> Var:
    if g.opset >= 20:
        return g.op("Gelu", x, approximate="tanh" if tanh else "none")

    def n(v: float) -> Var:
        return g.scalar(v, x.dtype)
    if tanh:
        inner = g.op("Mul", n(math.sqrt(2 / math.pi)), g.op("Add", x, g.op("Mul", n(0.044715), g.op("Mul", g.op("Mul", x, x), x))))
        gate = g.op("Tanh", inner)
    else:
        gate = g.op("Erf", g.op("Div", x, n(math.sqrt(2))))
    return g.op("Mul", g.op("Mul", x, g.op("Add", gate, n(1))), n(0.5))


@translates("leaky_relu")
def _leaky_relu(g: Graph, x: Var, slope: float) -> Var:
    return g.op("LeakyRelu", x, alpha=float(slope))


@translates("prelu")
def _prelu(g: Graph, x: Var, w: Var) -> Var:
    if w.shape and len(w.shape) == 1 and x.ndim > 2:
        w = g.op("Reshape", w, [-1] + [1] * (x.ndim - 2))
    return g.op("PRelu", x, w)


@translates("elu")
def _elu(g: Graph, x: Var, alpha: float, scale: float, steep: float) -> Var:
    if scale == 1 and steep == 1:
        return g.op("Elu", x, alpha=float(alpha))
    if steep == 1:
        return g.op("Selu", x, alpha=float(alpha), gamma=float(scale))
    return NotImplemented


@translates("celu")
def _celu(g: Graph, x: Var, alpha: float, scale: float, steep: float) -> Var:
    return g.op("Celu", x, alpha=float(alpha))


@translates("softplus")
def _softplus(g: Graph, x: Var, beta: float, threshold: float) -> Var:
    if beta == 1:
        return g.op("Softplus", x)
    b = g.scalar(beta, x.dtype)
    return g.op("Div", g.op("Softplus", g.op("Mul", x, b)), b)


@translates("threshold")
def _threshold(g: Graph, x: Var, limit: Any, value: Any) -> Var:
    return g.op("Where", g.op("Greater", x, g.scalar(limit, x.dtype)), x, g.scalar(value, x.dtype))


@translates("hardshrink")
def _hardshrink(g: Graph, x: Var, size: float) -> Var:
    return g.op("Shrink", x, lambd=float(size), bias=0.0)


@translates("softshrink")
def _softshrink(g: Graph, x: Var, size: float, bound: float) -> Var:
    return g.op("Shrink", x, lambd=float(size), bias=float(size))


@translates("glu")
def _glu(g: Graph, x: Var, dim: int) -> Var:
    a, b = g.op("Split", x, n=2, axis=dim, num_outputs=2)
    return g.op("Mul", a, g.op("Sigmoid", b))


@translates("softmax")
def _softmax(g: Graph, x: Var, dim: int) -> Var:
    return g.op("Softmax", x, axis=-1 if dim == x.ndim - 1 else dim)


@translates("log_softmax")
def _log_softmax(g: Graph, x: Var, dim: int) -> Var:
    return g.op("LogSoftmax", x, axis=-1 if dim == x.ndim - 1 else dim)


@translates("native_dropout", called="dropout")
def _dropout(g: Graph, x: Var, mask: Var, scale: float) -> Var:
    return g.op("Dropout", x, g.const(np.asarray(1 - 1 / scale, np.float32)), g.const(np.asarray(True)))


NAMES.update({"sum_dim": "sum_1", "mean_dim": "mean", "prod_dim": "prod", "sum": "sum_1", "max_dim": "max_1", "min_dim": "min_1", "max_of_all": "max_1",
              "min_of_all": "min_1", "pow": "pow_1", "pow_scalar": "pow_1", "abs": "abs_1", "round": "round_1", "all": "all_1", "any": "any_1",
              "slice": "slice_1"})
