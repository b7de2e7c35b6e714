"""Operations that work element by element, with broadcasting and type promotion."""
from case import ALL_DTYPES, REAL_DTYPES, Case, Name, bools, case, cplx, ints, lit, pos, s, t

SPECIAL = lit([0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e30, 1e-30, 0.5, -2.5], grad=False)
UNIT = {"low": -0.9, "high": 0.9}


def unary(name: str, *more, low: float = -2.0, high: float = 2.0, complex_too: bool = True, dtypes=ALL_DTYPES,
    **flags) -> Case:
    samples = [s(t(3, 4, low=low, high=high)), s(t(low=low, high=high)), s(t(2, 3, low=low, high=high,
        layout="transposed")), s(t(0, 3)), s(SPECIAL)]
    if complex_too:
        samples.append(s(cplx(2, 3, low=low, high=high)))
    return case(name, *samples, *more, errors=(s([1.0, 2.0]), s(t(2), t(2), t(2), t(2))), dtypes=dtypes, **flags)


UNARY = [
    unary("torch.abs"),
    unary("torch.absolute"),
    unary("torch.neg"),
    unary("torch.negative"),
    unary("torch.positive"),
    unary("torch.sign", complex_too=False),
    unary("torch.sgn"),
    unary("torch.signbit", complex_too=False),
    unary("torch.exp"),
    unary("torch.exp2"),
    unary("torch.expm1"),
    unary("torch.log", low=0.1),
    unary("torch.log2", low=0.1),
    unary("torch.log10", low=0.1),
    unary("torch.log1p", low=-0.5),
    unary("torch.sqrt", low=0.1),
    unary("torch.rsqrt", low=0.1),
    unary("torch.square"),
    unary("torch.reciprocal", low=0.5),
    unary("torch.sin"),
    unary("torch.cos"),
    unary("torch.tan", low=-1, high=1),
    unary("torch.asin", **UNIT),
    unary("torch.arcsin", **UNIT),
    unary("torch.acos", **UNIT),
    unary("torch.arccos", **UNIT),
    unary("torch.atan"),
    unary("torch.arctan"),
    unary("torch.sinh"),
    unary("torch.cosh"),
    unary("torch.tanh"),
    unary("torch.asinh"),
    unary("torch.acosh", low=1.2, high=4),
    unary("torch.atanh", **UNIT),
    unary("torch.arctanh", **UNIT),
    unary("torch.sigmoid"),
    unary("torch.logit", low=0.1, high=0.9, complex_too=False, dtypes=REAL_DTYPES),
    unary("torch.erf", complex_too=False),
    unary("torch.erfc", complex_too=False),
    unary("torch.erfinv", complex_too=False, **UNIT),
    unary("torch.lgamma", low=0.3, high=5, complex_too=False, tol=3),
    unary("torch.digamma", low=0.3, high=5, complex_too=False, tol=3),
    unary("torch.i0", complex_too=False),
    unary("torch.sinc", low=0.2, tol=3),
    unary("torch.relu", complex_too=False),
    unary("torch.floor", complex_too=False),
    unary("torch.ceil", complex_too=False),
    unary("torch.trunc", complex_too=False),
    unary("torch.fix", complex_too=False),
    unary("torch.frac", complex_too=False),
    unary("torch.round", s(lit([0.5, 1.5, 2.5, -0.5, -1.5])), s(t(4), decimals=1),
         s(lit([123.456, -17.5]), decimals=-1), complex_too=False),
    unary("torch.deg2rad", complex_too=False),
    unary("torch.rad2deg", complex_too=False),
    unary("torch.angle"),
    unary("torch.conj"),
    unary("torch.conj_physical"),
    unary("torch.resolve_conj"),
    unary("torch.isnan", grad=False),
    unary("torch.isinf", grad=False),
    unary("torch.isfinite", grad=False),
    unary("torch.isposinf", grad=False, complex_too=False),
    unary("torch.isneginf", grad=False, complex_too=False),
    unary("torch.isreal", grad=False),
    unary("torch.logical_not", grad=False),
    case("torch.bitwise_not", s(ints(3, 4)), s(bools(3)), s(ints(3, dtype="uint8")), errors=(s(t(3)),)),
    case("torch.nan_to_num", s(SPECIAL), s(t(3, 4)), s(SPECIAL, 1.0), s(SPECIAL, nan=2.0, posinf=3.0, neginf=-3.0),
         s(SPECIAL, posinf=7.0), dtypes=ALL_DTYPES),
    case("torch.real", s(t(3)), s(cplx(2, 3)), out=False, strides=True),
    case("torch.imag", s(cplx(2, 3)), errors=(s(t(3)),), strides=True),
    case("torch.mvlgamma", s(pos(3, low=3, high=5), 2), errors=(s(pos(3), 0),)),
    case("torch.polygamma", s(1, pos(4)), s(2, pos(4)), method=False, inplace=False, tol=10),
    case("torch.clone", s(t(3, 4)), s(t(3, 4), memory_format=None), s(t(3, 4, layout="transposed")),
         s(t(3, 4), memory_format=Name("contiguous_format")),
         s(t(3, 4, layout="transposed"), memory_format=Name("contiguous_format")), strides=True, dtypes=ALL_DTYPES),
]


def binary(name: str, *more, low: float = -2.0, high: float = 2.0, scalar=1.5, complex_too: bool = True,
    dtypes=ALL_DTYPES, right=t, errors=(), **flags) -> Case:
    """Broadcasting in both directions, a Python number, a 0-dim tensor, an empty tensor, mixed dtypes."""
    bounds = {"low": low, "high": high}
    samples = [s(t(3, 4, **bounds), right(3, 4, **bounds)), s(t(3, 1, **bounds), right(4, **bounds)), s(t(2, 3,
        **bounds), scalar), s(t(2, 3, **bounds), right(**bounds)), s(t(0, 3), right(3, **bounds)), s(t(3, **bounds),
        ints(3, low=1, high=3)), s(t(3, **bounds), right(3, dtype="float64", **bounds)), s(t(2, 3,
        layout="transposed", **bounds), right(2, 3, **bounds))]
    if complex_too:
        samples += [s(cplx(2, 3, **bounds), right(2, 3, dtype="complex64", sweep=False, **bounds)), s(cplx(2,
            **bounds), 2 - 1j)]
    return case(name, *samples, *more, errors=(s(t(3), t(4)), s(t(3), "a"), s(t(3)), s(t(2, 3), t(3, 2)), *errors),
        dtypes=dtypes, **flags)


BINARY = [
    binary("torch.add", s(t(3), t(3), alpha=2), s(ints(3), ints(3), alpha=-3), s(bools(3), bools(3)), s(bools(3), bools(3), alpha=2),
           s(bools(3), bools(3), alpha=0), s(ints(3), t(3), alpha=0.5), s(t(3), ints(3), alpha=0.5), s(3, t(3), alpha=2),
           s(cplx(3), t(3), alpha=2j),
           errors=(s(ints(3), ints(3), alpha=0.5), s(t(3), t(3), alpha=2j), s(bools(3), bools(3), alpha=0.5))),
    binary("torch.sub", s(t(3), t(3), alpha=0.5), s(ints(3), 2), s(t(3), ints(3), alpha=1.5)),
    binary("torch.subtract"),
    binary("torch.rsub", inplace=False),
    binary("torch.mul", s(bools(3), bools(3))),
    binary("torch.multiply"),
    binary("torch.div", s(ints(4), ints(4, low=1)), s(t(4), pos(4), rounding_mode="floor"),
         s(t(4), pos(4), rounding_mode="trunc"), s(ints(4, low=-7), ints(4, low=2), rounding_mode="floor"),
         s(ints(4, low=-7), ints(4, low=2), rounding_mode="trunc"), s(t(3), 0.0), right=pos),
    binary("torch.divide", right=pos),
    binary("torch.true_divide", right=pos),
    binary("torch.floor_divide", s(ints(5, low=-9, high=9), 4), right=pos, complex_too=False, gradgrad=False),
    binary("torch.remainder", s(ints(6, low=-9, high=9), 4), s(ints(6, low=-9, high=9), -4), right=pos,
         complex_too=False),
    binary("torch.fmod", s(ints(6, low=-9, high=9), 4), s(ints(6, low=-9, high=9), -4), right=pos, complex_too=False),
    binary("torch.pow", s(2, t(3)), s(2.5, t(3)), s(ints(4), 2), s(ints(4), ints(4)), s(t(3), 2), s(t(3), 0),
         s(t(3), 3), s(pos(3), -1), s(pos(3), 0.5), s(lit([0.0, 1.0]), 0), s(bools(3), 2), errors=(s(bools(3), -1), s(ints(3), -1)), low=0.3, method=False),
    binary("torch.float_power", low=0.3, dtypes=("int64", "float32", "complex64")),
    binary("torch.atan2", complex_too=False),
    binary("torch.arctan2", complex_too=False),
    binary("torch.hypot", complex_too=False, scalar=lit(1.5)),
    binary("torch.copysign", complex_too=False),
    binary("torch.maximum", complex_too=False, scalar=lit(0.5)),
    binary("torch.minimum", complex_too=False, scalar=lit(0.5)),
    binary("torch.fmax", complex_too=False, scalar=lit(0.5)),
    binary("torch.fmin", complex_too=False, scalar=lit(0.5)),
    binary("torch.logaddexp", complex_too=False, scalar=lit(0.5)),
    binary("torch.logaddexp2", complex_too=False, scalar=lit(0.5)),
    binary("torch.xlogy", right=pos, complex_too=False),
    binary("torch.heaviside", complex_too=False, grad=False, scalar=lit(0.5)),
    binary("torch.nextafter", complex_too=False, grad=False, scalar=lit(0.5), dtypes=("float32", "float64")),
    binary("torch.ldexp", right=lambda *shape, **kw: ints(*shape, high=3), complex_too=False, inplace=False,
         scalar=lit(2)),
    # torch takes 2 ** exponent in integers for the gradient, which makes it zero here; ours is the true one
    case("torch.ldexp", s(t(3, 4), ints(3, 4, low=-3, high=3)), s(t(3), ints(3, low=-3, high=-1)), grad=False,
         inplace=False, tag="fractions"),
    case("torch.gcd", s(ints(6, low=-20, high=20), ints(6, low=1, high=20)), s(ints(2, 1), ints(3)),
         errors=(s(t(2), t(2)),)),
    case("torch.lcm", s(ints(6, low=-20, high=20), ints(6, low=1, high=20)), errors=(s(t(2), t(2)),)),
    *[case(f"torch.logical_{n}", s(t(3), t(3)), s(bools(3), bools(3)), s(ints(3), bools(3)), s(cplx(2), cplx(2)),
         dtypes=ALL_DTYPES, errors=(s(t(3), 1),)) for n in ("and", "or", "xor")],
    *[case(f"torch.bitwise_{n}", s(ints(3), ints(3)), s(bools(3), bools(3)), s(ints(3), 6),
         s(ints(3, dtype="uint8"), ints(3)), s(3, ints(3)), s(bools(3), True),
         errors=(s(t(3), t(3)), s(ints(3), 1.5)), method=False) for n in ("and", "or", "xor")],
    *[case(f"torch.bitwise_{n}_shift", s(ints(3), ints(3)), s(ints(3), 2), s(2, ints(3)),
         s(ints(3, dtype="uint8"), ints(3, dtype="uint8")), s(ints(4, low=-9, high=9, dtype="int32"), 1),
         errors=(s(t(3, dtype="complex64"), ints(3)),), method=False) for n in ("left", "right")],
]

TERNARY = [
    case("torch.clamp", s(t(3, 4), -1, 1), s(t(3, 4), min=0.5), s(t(3, 4), max=0.5), s(t(3, 4), -0.5, None),
         s(ints(5), 1, 3), s(ints(5), 0.5, 2.5), s(t(3), t(3), None), s(t(2, 3), t(3), pos(2, 1)),
         s(t(3), min=t(3, dtype="float64")), s(t(4), 1.0, -1.0), s(lit([float("nan"), 1.0, 5.0]), 0, 2),
         errors=(s(t(3)), s(t(3), None, None), s(t(3), "a"), s(cplx(3), 0, 1)), dtypes=ALL_DTYPES),
    case("torch.clip", s(t(3, 4), -1, 1), s(t(3, 4), min=0.5), s(ints(5), 1, 3), errors=(s(t(3)),)),
    case("torch.clamp_min", s(t(3, 4), 0.3), s(t(3), t(3)), s(ints(4), 2), errors=(s(t(3), None),), dtypes=ALL_DTYPES),
    case("torch.clamp_max", s(t(3, 4), 0.3), s(t(3), t(3)), s(ints(4), 2), errors=(s(t(3), None),), dtypes=ALL_DTYPES),
    case("torch.where", s(bools(3, 4), t(3, 4), t(3, 4)), s(bools(3, 1), t(4), t()), s(bools(3), t(3), 1.0),
         s(bools(3), 2, t(3)), s(bools(3), 1, 2), s(bools(3), 1.0, 0), s(bools(3), t(3), ints(3)),
         s(bools(3), ints(3), 1.5), s(bools(2, 3)), s(ints(3, high=1, dtype="uint8"), t(3), t(3)),
         s(bools(3), cplx(3), t(3)), errors=(s(bools(3), t(4), t(3)), s(bools(3), t(3)), s(t(3), t(3), t(3))),
         dtypes=ALL_DTYPES, method=False),
    case("Tensor.where", s(t(3, 4), bools(3, 4), t(3, 4)), s(t(3), bools(3), 1.0), errors=(s(t(3), bools(4), t(3)),)),
    case("torch.lerp", s(t(3, 4), t(3, 4), 0.3), s(t(3), t(3), t(3)), s(t(2, 1), t(3), t(3)),
         s(cplx(3), cplx(3), 0.25), errors=(s(t(3), ints(3), 0.5), s(t(3), t(4), 0.5), s(t(3), 1.0, 0.5)),
         dtypes=ALL_DTYPES),
    case("torch.addcmul", s(t(3), t(3), t(3)), s(t(3), t(3), t(3), value=0.5), s(t(2, 1), t(3), t(2, 3), value=-2),
         s(ints(3), ints(3), ints(3), value=2), s(ints(3), ints(3), ints(3), value=0.5),
         errors=(s(t(3), t(4), t(3)),), dtypes=ALL_DTYPES),
    case("torch.addcdiv", s(t(3), t(3), pos(3)), s(t(3), t(3), pos(3), value=0.5), s(t(2, 1), t(3), pos(2, 3)),
         errors=(s(ints(3), ints(3), ints(3, low=1)), s(t(3), t(4), t(3))), dtypes=ALL_DTYPES),
    case("torch.complex", s(t(3), t(3)), s(t(3, dtype="float64"), t(3, dtype="float64")),
         errors=(s(t(3), t(3, dtype="float64")), s(ints(3), ints(3)))),
    case("torch.polar", s(pos(3), t(3)), errors=(s(t(3), ints(3)),)),
    case("torch.view_as_real", s(cplx(2, 3)), errors=(s(t(2)),), strides=True),
    case("torch.view_as_complex", s(t(3, 2)), errors=(s(t(3)), s(ints(3, 2))), strides=True),
]

SCALAR_OPERATORS = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "truediv": lambda a, b: a / b, "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b,
    "pow": lambda a, b: a ** b, "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "lshift": lambda a, b: a << b, "rshift": lambda a, b: a >> b, "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, }
NUMBERS = (2, 1.5, True, 2 - 1j)


def _iadd(op):
    namespace: dict = {}
    exec(f"def edit(a, b):\n before = a\n a {op}= b\n return [a, before, a is before]", namespace)  # noqa: S102
    return namespace["edit"]


IN_PLACE_OPERATORS = {"iadd": "+", "isub": "-", "imul": "*", "itruediv": "/", "ifloordiv": "//", "imod": "%",
    "ipow": "**", "iand": "&", "ior": "|", "ixor": "^", "ilshift": "<<", "irshift": ">>"}


def operator(name: str, apply) -> Case:
    """`a op b` with tensors and numbers on either side; what torch refuses must be refused here."""
    tensors = [pos(2, 3), ints(2, 3, low=1), bools(2, 3), pos(dtype="float64", sweep=False), lit(3, "int64")]
    samples = [s(a, b) for a in tensors for b in (pos(2, 3), ints(3, low=1), bools(3), pos(), lit(2, "int64"))]
    samples += [s(a, n) for a in tensors for n in NUMBERS] + [s(n, a) for a in tensors[:4] for n in NUMBERS]
    samples += [s(pos(2), "text"), s(pos(2), None), s(pos(2), [1.0, 2.0]), s(pos(2), pos(3))]
    return case("Tensor.__" + name + "__", *samples, fn=lambda torch, a, b: apply(a, b), vmap=False, gradgrad=False,
                grad=name in ("add", "sub", "mul", "truediv", "pow", "mod"))


def in_place_operator(name: str, symbol: str) -> Case:
    tensors = [pos(2, 3), ints(2, 3, low=1), bools(2, 3)]
    samples = [s(a, b) for a in tensors for b in (pos(2, 3), ints(3, low=1), bools(3), pos(), *NUMBERS)]
    samples += [s(pos(3), pos(2, 3)), s(pos(2), "text")]
    edit = _iadd(symbol)
    return case("Tensor.__" + name + "__", *samples, fn=lambda torch, a, b: edit(a.clone(), b), vmap=False,
        gradgrad=False, grad=name in ("iadd", "isub", "imul", "itruediv"))


OPERATORS = [
    *[operator(name, apply) for name, apply in SCALAR_OPERATORS.items()],
    *[in_place_operator(name, symbol) for name, symbol in IN_PLACE_OPERATORS.items()],
    case("Tensor.__neg__", s(t(3)), s(ints(3)), s(bools(3)), fn=lambda torch, a: -a),
    case("Tensor.__pos__", s(t(3)), fn=lambda torch, a: +a),
    case("Tensor.__abs__", s(t(3)), fn=lambda torch, a: abs(a)),
    case("Tensor.__invert__", s(ints(3)), s(bools(3)), s(t(3)), fn=lambda torch, a: ~a),
    case("Tensor.__matmul__", s(t(2, 3), t(3, 2)), s(t(3), t(3)), s(t(2), t(3)), fn=lambda torch, a, b: a @ b),
    case("Tensor.__round__", s(t(3)), fn=lambda torch, a: a.round()),
    case("Tensor.__bool__", s(lit(1.0)), s(lit([0])), s(t(2)), s(t(0)), s(lit(2j, "complex64")),
         fn=lambda torch, a: bool(a), grad=False, vmap=False),
    case("Tensor.__int__", s(lit(1.7)), s(lit([3])), s(t(2)), s(lit(True, "bool")), fn=lambda torch, a: int(a),
         grad=False, vmap=False),
    case("Tensor.__float__", s(lit(1.5)), s(lit([3], "int64")), s(t(2)), fn=lambda torch, a: float(a), grad=False,
         vmap=False),
    case("Tensor.__complex__", s(lit(1.5)), s(lit(1 + 2j, "complex64")), fn=lambda torch, a: complex(a), grad=False,
         vmap=False),
    case("Tensor.__index__", s(lit(2, "int64")), s(lit(2.0)), s(lit([1], "int64")), s(lit([1, 2], "int64")),
         fn=lambda torch, a: [10, 11, 12, 13][a], grad=False, vmap=False),
    case("Tensor.__len__", s(t(3, 2)), s(t(0)), s(t()), fn=lambda torch, a: len(a), grad=False, vmap=False),
    case("Tensor.__iter__", s(t(3, 2)), s(t(3)), s(t()), fn=lambda torch, a: list(a)),
    case("Tensor.__contains__", s(ints(4), 2), s(ints(4), 77), s(t(3), lit(1.0)), s(t(3), "a"),
         fn=lambda torch, a, b: b in a, grad=False, vmap=False),
    case("Tensor.__reversed__", s(t(3, 2)), s(t()), fn=lambda torch, a: reversed(a)),
]

CASES = UNARY + BINARY + TERNARY + OPERATORS
