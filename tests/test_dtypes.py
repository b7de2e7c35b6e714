"""Dtypes: the promotion table in full, casts, limits, defaults."""
import operator
from functools import partial

import numpy as np
import pytest
from case import ALL_DTYPES
from compare import Raised, accidental, attempt, leaf_name
from same import caught, error, outcomes, same

NUMBERS = (True, 2, 1.5, 1 + 1j)
ACCIDENT = " (no kernel)"
OPERATORS = {n: getattr(operator, n) for n in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_",
    "or_", "eq", "lt", "lshift")}
IN_PLACE = {n: getattr(operator, n) for n in ("iadd", "isub", "imul", "itruediv", "ipow", "iand", "ifloordiv", "imod")}
FUNCTIONS = ("add", "mul", "div", "true_divide", "floor_divide", "remainder", "fmod", "pow", "atan2", "maximum",
    "minimum", "where", "lerp", "copysign", "logical_and", "eq", "hypot", "logaddexp", "bitwise_and", "xlogy", "fmax",
    "dot", "matmul", "cat", "stack", "dist", "outer", "gcd", "float_power", "ldexp", "isclose", "index_add",
    "masked_fill")


def _tensor(torch, dtype, shape):
    return torch.ones(shape, dtype=getattr(torch, dtype))


def _dtype_or_error(torch, function, *args):
    """The result's dtype, or the class of the error, marked where a library lacks the kernel."""
    outcome = attempt(lambda: leaf_name(function(*args).dtype))
    if not isinstance(outcome, Raised):
        return outcome
    return outcome.kind + (ACCIDENT if accidental(outcome) else "")


def _compare_tables(want, got):
    wrong = {key: (got[key].removesuffix(ACCIDENT), kind) for key, kind in want.items()
             if not kind.endswith(ACCIDENT) and got[key].removesuffix(ACCIDENT) != kind}
    assert not wrong, f"{len(wrong)} of {len(want)} differ (ours, torch's): " + str(dict(list(wrong.items())[:25]))


def _pairs(torch, apply):
    """Both 1-dim, 1-dim with 0-dim on either side, both 0-dim, for all pairs of dtypes."""
    table = {}
    for a in ALL_DTYPES:
        for b in ALL_DTYPES:
            for shapes in (((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())):
                table[a, b, shapes] = _dtype_or_error(torch, apply, _tensor(torch, a, shapes[0]),
                    _tensor(torch, b, shapes[1]))
    return table


def _with_numbers(torch, apply):
    table = {}
    for a in ALL_DTYPES:
        for number in NUMBERS:
            for shape in ((2,), ()):
                x = _tensor(torch, a, shape)
                table[a, number, shape] = _dtype_or_error(torch, apply, x, number)
                table[number, a, shape] = _dtype_or_error(torch, apply, number, x)
    return table


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_promotion(oracle, subject, name):
    _compare_tables(_pairs(oracle, OPERATORS[name]), _pairs(subject, OPERATORS[name]))
    _compare_tables(_with_numbers(oracle, OPERATORS[name]), _with_numbers(subject, OPERATORS[name]))


def _in_place(torch, apply):
    table = {}
    for a in ALL_DTYPES:
        for b in (*ALL_DTYPES, *NUMBERS):
            other = _tensor(torch, b, (2,)) if isinstance(b, str) else b
            table[a, b] = _dtype_or_error(torch, apply, _tensor(torch, a, (2,)), other)
    return table


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_promotion(oracle, subject, name):
    _compare_tables(_in_place(oracle, IN_PLACE[name]), _in_place(subject, IN_PLACE[name]))


def _function(torch, name):
    function = getattr(torch, name)
    return {"where": lambda a, b: torch.where(torch.tensor([True, False]), a, b),
        "lerp": lambda a, b: torch.lerp(a, b, 0.5), "cat": lambda a, b: torch.cat([a, b]),
        "stack": lambda a, b: torch.stack([a, b]),
        "index_add": lambda a, b: torch.index_add(a, 0, torch.tensor([0, 1]), b),
        "masked_fill": lambda a, b: torch.masked_fill(a, torch.tensor([True, False]), b.sum())}.get(name, function)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_promotion(oracle, subject, name):
    tables = []
    for torch in (oracle, subject):
        apply = _function(torch, name)
        tables.append({(a, b): _dtype_or_error(torch, apply, _tensor(torch, a, (2,)),
            _tensor(torch, b, (2,))) for a in ALL_DTYPES for b in ALL_DTYPES})
    _compare_tables(*tables)


@same
def test_result_type_table(torch):
    left = {f"{d}{shape}": _tensor(torch, d, shape) for d in ALL_DTYPES for shape in ((2,), ())}
    return {f"{a}, {b}": torch.result_type(x, y) for a, x in left.items()
            for b, y in {**left, **{str(n): n for n in NUMBERS}}.items()}


@same
def test_result_type_of_numbers(torch):
    return ([torch.result_type(a, b) for a in NUMBERS for b in NUMBERS], error(torch.result_type, "a", 1),
            error(torch.result_type, 1))


MORE_DTYPES = (*ALL_DTYPES, "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")


@same
def test_promote_types_table(torch):
    return {f"{a}, {b}": caught(torch.promote_types, getattr(torch, a), getattr(torch, b))
            for a in ALL_DTYPES for b in MORE_DTYPES}


@same
def test_can_cast_table(torch):
    return {f"{a} to {b}": torch.can_cast(getattr(torch, a),
        getattr(torch, b)) for a in MORE_DTYPES for b in MORE_DTYPES}


@pytest.mark.parametrize("source", ALL_DTYPES)
@same
def test_casts_of_values(torch, source):
    data = {"bool": [True, False], "uint8": [0, 1, 127, 128, 255], "int8": [0, -1, 127, -128],
        "int16": [0, -1, 300, -32768], "int32": [0, 70000, -2 ** 31], "int64": [0, 2 ** 40 + 1, -1, 2 ** 53 + 1]}
    plain = [0.0, -0.0, 1.9, -1.9, 100.5, 3.0]
    values = data.get(source, [1 + 2j, -1.5j] if source.startswith("complex") else plain)
    x = torch.tensor(values, dtype=getattr(torch, source))
    defined = [d for d in ALL_DTYPES if d != "uint8" or not source.startswith(("float", "bfloat"))]  # -1.9 has no uint8
    return {d: x.to(getattr(torch, d)) for d in defined}


@same
def test_rounding_of_low_precision(torch):
    x = torch.tensor([1.0, 1.001, 65504.0, 65520.0, 1e-8, 3.14159, 1 + 2 ** -9, 1 + 3 * 2 ** -9, 1e38, 448.0, 500.0,
        0.001])
    return ([x.to(getattr(torch, d)).float() for d in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")],
            [(x.half() + x.half()), (x.bfloat16() * 3), x.half().sum(), x.bfloat16()[:4].mean()])


@same
def test_integer_arithmetic_wraps(torch):
    return (torch.tensor([255], dtype=torch.uint8) + 1, torch.tensor([127], dtype=torch.int8) + 1,
        torch.tensor([2 ** 31 - 1], dtype=torch.int32) * 2, torch.tensor([2 ** 63 - 1]) + 1,
        -torch.tensor([1], dtype=torch.uint8),
        torch.tensor([200], dtype=torch.uint8) * torch.tensor([2], dtype=torch.uint8), torch.tensor([2 ** 62]) * 4,
        torch.tensor([100, 100], dtype=torch.int8).sum(), torch.tensor([2 ** 40]) * 3, torch.tensor([-7]) // 2,
        torch.tensor([-7]) % 3, torch.tensor([7]) // -2, torch.tensor([3], dtype=torch.int32) ** 3,
        torch.tensor([True]) + torch.tensor([True]), torch.arange(5).float() / 0,
        torch.tensor([2 ** 53 + 1]).double(), error(lambda: torch.tensor([1]) // 0),
        error(lambda: torch.tensor([1]) % 0))


@same
def test_scalars_out_of_range(torch):
    u = torch.zeros(2, dtype=torch.uint8)
    return outcomes(locals(), [
        "u + 300", "u.fill_(256)", "u == 300", "torch.full((1,), 300, dtype=torch.uint8)", "torch.tensor([1e40])",
        "torch.ones(1, dtype=torch.float16) * 1e5", "torch.tensor(2 ** 63)", "torch.tensor(2 ** 63 - 1)",
        "torch.tensor([1.0]) + 2 ** 40",
        "torch.tensor(-1, dtype=torch.uint8)"])


@pytest.mark.parametrize("dtype",
    ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"])
@same
def test_finfo(torch, dtype):
    info = torch.finfo(getattr(torch, dtype))
    return ([info.bits, info.dtype, str(info)],
            [np.float64(getattr(info, n)).hex() for n in ("eps", "max", "min", "smallest_normal", "resolution")])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"])
@same
def test_iinfo(torch, dtype):
    info = torch.iinfo(getattr(torch, dtype))
    return info.bits, info.max, info.min, info.dtype, str(info)


@same
def test_info_errors(torch):
    return outcomes(locals(), [
        "torch.finfo(torch.int64)", "torch.iinfo(torch.float32)", "torch.iinfo(torch.bool)", "torch.finfo('float32')",
        "torch.finfo().dtype", "torch.iinfo()"])


@same
def test_facts_of_dtypes(torch):
    return [(str(d), repr(d), d.is_floating_point, d.is_complex, d.is_signed, d.itemsize, d.to_real(),
        caught(d.to_complex)) for d in (getattr(torch, n) for n in ALL_DTYPES)]


@same
def test_names_of_one_dtype(torch):
    pairs = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64",
        "short": "int16", "cfloat": "complex64", "cdouble": "complex128"}
    return ([getattr(torch, a) is getattr(torch, b) for a, b in pairs.items()], torch.float32 == torch.float64,
            len({torch.float32, torch.float, torch.int}), error(lambda: torch.float32(3)))


@pytest.mark.parametrize("default", ["float64", "float16", "bfloat16", "float32"])
@same
def test_default_dtype(torch, default):
    torch.set_default_dtype(getattr(torch, default))
    try:
        x = torch.arange(3)
        return [torch.get_default_dtype(), torch.tensor(1.5), torch.zeros(1).dtype, (x / 2).dtype, (x * 1.5).dtype,
            caught(lambda: torch.tensor(1j).dtype), torch.linspace(0, 1, 3), x.float().mean().dtype,
            torch.sqrt(x).dtype, torch.empty(0).dtype, torch.nn.Linear(1, 1).weight.dtype,
            torch.full((1,), 2.0).dtype, torch.rand(2).dtype, torch.as_tensor(np.ones(1)).dtype]
    finally:
        torch.set_default_dtype(torch.float32)


@same
def test_default_dtype_errors(torch):
    return [error(torch.set_default_dtype, torch.int64), error(torch.set_default_dtype, "float32"),
        error(torch.set_default_dtype, None)]


@same
def test_inference_from_data(torch):
    kinds = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64",
             "complex128", "uint16", "uint32", "uint64", "U1", "object", "datetime64[s]", ">f4")
    return (outcomes(locals(), [f"torch.tensor({d}).dtype" for d in ("1", "1.0", "True", "1j", "[1, 2.0]",
        "[True, 1]", "[1, 1j]", "[]", "np.float32(1)", "np.float64(1)", "np.int8(1)", "np.array([1, 2])",
        "np.array([1.0])", "np.array([True])", "[np.float32(1), 2]", "np.float16(2)", "(1, 2)")]),
        outcomes(locals(), [f"torch.from_numpy(np.zeros(1, {d!r})).dtype" for d in kinds]),
        error(torch.from_numpy, [1]))


@same
def test_int64_and_float64_are_real(torch):
    x = torch.tensor([2 ** 40 + 1, 2 ** 62])
    y = torch.tensor([1e300, 1e-300, 1 + 2 ** -50], dtype=torch.float64)
    return (x + 1, x.sum(), x * 2 - x, y * y.reciprocal(), (y - 1), torch.arange(2 ** 40, 2 ** 40 + 3),
            torch.tensor(2 ** 40).item(), torch.cumsum(x[:1].repeat(3), 0),
            torch.tensor([1e-200], dtype=torch.float64) ** 1.5)


REDUCTIONS = ("sum()", "prod()", "mean()", "max()", "cumsum(0)", "any()", "all()", "argmax()", "norm()", "logsumexp(0)",
              "std()", "var()", "median()", "cumprod(1)", "nansum()", "amin(0)", "count_nonzero()")


def test_dtypes_of_reductions(oracle, subject):
    tables = []
    for torch in (oracle, subject):
        tables.append({(dtype, call): _dtype_or_error(torch, eval(f"lambda x: x.{call}"), _tensor(torch, dtype, (2, 2)))
                       for dtype in ALL_DTYPES for call in REDUCTIONS})
    _compare_tables(*tables)


@same
def test_type_strings(torch):
    return ([_tensor(torch, d, (1,)).type() for d in ALL_DTYPES],
            [str(torch.ones(1).type(n).dtype) for n in ("torch.DoubleTensor", "torch.LongTensor", "torch.HalfTensor",
            "torch.BoolTensor")], isinstance(torch.ones(1), torch.FloatTensor),
            isinstance(torch.ones(1), torch.LongTensor), torch.FloatTensor([1, 2]), torch.LongTensor(2, 3).shape)


@pytest.mark.parametrize("dtype", [None, "float32", "int64", "bool"])
@same
def test_tensors_in_lists_are_numbers(torch, dtype):
    """One element of any shape is a number, several are not; where the shape is known already they are a row."""
    one, none, two = torch.tensor([1.5]), torch.tensor(2.5), torch.tensor([1.0, 2.0])
    lists = ([one, one], [[one], [none]], [[one.reshape(1, 1, 1)]], [one, 2], [3, one], [torch.tensor([True]), torch.tensor([[2]])], [two],
             [[two]], [none, two], [two, none], [torch.zeros(0)], [one, [1.5]], [[1.5], one], [[1.5, 2.5], two], [[1.5], two], [none, np.ones(1)],
             [np.ones(1), np.ones(1)], [torch.tensor([1 + 2j])], [[[one]], [[one]]])
    words = {} if dtype is None else {"dtype": getattr(torch, dtype)}
    return [caught(partial(make, x, **words)) for x in lists for make in (torch.tensor, torch.as_tensor)]


@same
def test_complex_numbers_of_halves(torch):
    x = torch.tensor([1.0, 2.3, 70000.0, float("inf"), -1e-8, 0.1], requires_grad=True)
    y = x.chalf()
    y.real.float().sum().backward()
    others = [t.chalf() for t in (torch.tensor([1 + 2.3j, complex(1e9, 1), complex(0, float("inf"))]), torch.tensor([1, 3]), torch.tensor([True]))]
    return [(str(t.dtype), t.real.tolist(), t.imag.tolist()) for t in (y, *others)], x.grad


@same
def test_bytes_viewed_as_booleans(torch):
    """Every byte but 0 is True, also where it becomes a 16-bit or 8-bit float."""
    b = torch.tensor([0, 1, 2, 255, 0, 128], dtype=torch.uint8).view(torch.bool)
    return b, [b.to(kind).float() for kind in (torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.int64, torch.complex64)]


@same
def test_comparisons_of_bytes_viewed_as_booleans(torch):
    """True is True, whichever byte it is; writing leaves the other bytes alone."""
    x = torch.tensor([0, 1, 2, 255, 0, 128] * 20, dtype=torch.uint8)
    b, usual = x.view(torch.bool), x != 0
    found = [b != usual, b ^ usual, b.clone().view(torch.uint8), b.sort(stable=True), torch.equal(b, usual)]
    b[4:] = torch.tensor([True, False] * 58)
    return found, b, x[4:10] != 0, x[:4]


@same
def test_sizes_whose_strides_are_too_large(torch):
    return [error(make, [0, 4, 2 ** 61]) for make in (torch.empty, torch.zeros, torch.ones)], torch.empty(0, 4, 2 ** 60).stride()
