"""The NumPy evaluation of elementwise, shape, reduction and random programs equals XLA's."""

import jax
import jax.extend.core.primitives
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from numpy_lax_check import agree, floats, integers, interpret, same

from torchlike._core import numpy_lax

X, Y = floats(3, 5), floats(3, 5, seed=1)
POSITIVE = floats(3, 5, low=0.1, high=3)
UNIT = floats(3, 5, low=-0.95, high=0.95)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -1.5, 3.0, 1e-3, 40.0, -40.0, np.inf, -np.inf, np.nan]

ALL_REALS = (
    "exp expm1 sin cos atan sinh cosh tanh asinh cbrt logistic erf erfc sign abs neg floor ceil is_finite square"
)
POSITIVE_ONLY = "log log1p sqrt rsqrt lgamma digamma"
UNIT_ONLY = "asin acos atanh erf_inv tan bessel_i0e bessel_i1e"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_unary_functions(dtype):
    special = np.array(SPECIAL).astype(dtype)
    cases = {}
    for name in (ALL_REALS + " " + POSITIVE_ONLY + " " + UNIT_ONLY).split():
        f = getattr(lax, name, None) or getattr(lax, "bessel_" + name[7:])
        x = POSITIVE if name in POSITIVE_ONLY else UNIT if name in UNIT_ONLY else X
        cases[name] = f, x.astype(dtype)
        cases[name + " special"] = f, special
    cases["exp2"] = lax.exp2, X.astype(dtype)
    cases["acosh"] = lax.acosh, POSITIVE.astype(dtype) + dtype(1)
    cases["tan"] = lax.tan, UNIT.astype(dtype)
    for r in lax.RoundingMethod:
        cases[f"round {r}"] = lambda x, r=r: lax.round(x, r), np.concatenate([special, X.ravel().astype(dtype)])
    for y in (0, 1, 2, 3, -1, -3, 7):
        cases[f"integer_pow {y}"] = lambda x, y=y: lax.integer_pow(x, y), X.astype(dtype)
    gammas = {n: cases.pop(n) for n in ("lgamma", "digamma", "lgamma special", "digamma special")}
    agree(cases, ulps=2 if np.dtype(dtype).itemsize == 2 else 60, scale=1e-2)
    agree(gammas, ulps=2 if np.dtype(dtype).itemsize == 2 else 100, scale=1.0)  # XLA's own approximation is off by this


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_binary_functions(dtype):
    special = np.array(SPECIAL).astype(dtype)
    a, b = (m.ravel() for m in np.meshgrid(special, special))
    x, y, p = X.astype(dtype), Y.astype(dtype), POSITIVE.astype(dtype)
    cases = {}
    for name in "add sub mul div max min atan2 rem eq ne lt le gt ge nextafter".split():
        f = getattr(lax, name)
        cases[name], cases[name + " special"] = (f, x, y), (f, a, b)
    cases["pow"] = lax.pow, p, y
    cases["pow int"] = lax.pow, x, integers(3, 5, low=-3, high=4)
    cases["clamp"] = lambda x: lax.clamp(dtype(-1), x, dtype(1)), special
    cases["relu"] = jax.nn.relu, special
    agree(cases, ulps=4)


def test_zeros_keep_their_sign():
    zeros, others = np.array([0.0, -0.0, 0.0, -0.0], np.float32), np.array([0.0, 0.0, -0.0, -0.0], np.float32)
    for f in (
        lax.max,
        lax.min,
        lambda x, y: lax.max(x, np.float32(0)),
        lambda x, y: lax.max(np.float32(0), x),
        lambda x, y: lax.sort(x),
        lambda x, y: lax.sign(x),
        lambda x, y: lax.top_k(x, 4)[0],
    ):
        want = jax.jit(f)(zeros, others)
        np.testing.assert_array_equal(np.signbit(interpret(f, zeros, others)[0]), np.signbit(want))
    agree({"half": (lambda x: lax.sign(1 / lax.max(x, np.float16(0))), zeros.astype(np.float16))})


@pytest.mark.parametrize("shape", [(), (1,), (0, 3)])
def test_scalars_and_empty_arrays(shape):
    cases = {}
    for dtype in (np.float32, ml_dtypes.bfloat16, np.float16):
        x = np.full(shape, 0.3, dtype)
        for name in (ALL_REALS + " " + POSITIVE_ONLY + " " + UNIT_ONLY).split():
            cases[f"{name} {np.dtype(dtype)}"] = lambda x, f=getattr(lax, name): f(f(x * 1 + 0).astype(x.dtype) * x), x
        for name in "add sub mul div max min atan2 rem nextafter pow".split():
            cases[f"{name} {np.dtype(dtype)}"] = lambda x, f=getattr(lax, name): f(f(x, x), x), x
        cases[f"casts {np.dtype(dtype)}"] = lambda x: (x * 2).astype(np.int32).astype(bool).astype(x.dtype), x
        cases[f"moves {np.dtype(dtype)}"] = (
            lambda x: jnp.stack([(x + 1).reshape(-1), jnp.where(x > 0, x, -x).reshape(-1)]).T,
            x,
        )
        cases[f"reductions {np.dtype(dtype)}"] = (
            lambda x: (jnp.sum(x + 1), jnp.all(x > 0), jnp.cumsum((x + 1).reshape(-1))),
            x,
        )
    i = np.full(shape, 6, np.int32)
    for name in "population_count clz sign bitwise_not neg abs".split():
        cases[name] = lambda x, f=getattr(lax, name): f(f(x) + 1), i
    for name in "div rem shift_left shift_right_logical shift_right_arithmetic max bitwise_and".split():
        cases[name + " ints"] = lambda x, f=getattr(lax, name): f(f(x, x - 4), x - 5), i
    cases["bits"] = lambda i: lax.bitcast_convert_type(lax.bitcast_convert_type(i + 1, np.float32), np.uint8), i
    cases["rows"] = lambda i: jnp.arange(60.0).reshape(10, 6)[i + 1], i
    agree(cases, ulps=32)


def test_rarely_emitted_primitives():
    special, ones = np.array(SPECIAL, np.float32), np.ones(15, np.float32)
    words = integers(4, 6, dtype=np.uint32, low=0, high=2**32)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    agree(
        {
            "eq_to": (lax.eq_to_p.bind, special, special[::-1]),
            "le_to": (lax.le_to_p.bind, special, -special),
            "lt_to": (lax.lt_to_p.bind, -ones, special),
            "approx_max_k": (lambda x: lax.approx_max_k(x, 15), ones),
            "threefry2x32": (jax.extend.core.primitives.threefry2x32_p.bind, *words),
            "key": (lambda k: jax.random.bits(jax.random.wrap_key_data(k), (3,)), words[0, :2]),
            "scatter-sub": (
                lambda x, i, u: lax.scatter_sub(x, i, u, numbers),
                ones,
                np.array([[1], [3], [1]]),
                special[2:5],
            ),
            "pivots": (
                lambda p: lax.linalg.lu_pivots_to_permutation(p, 5),
                np.array([[2, 2, 4, 3], [1, 3, 2, 4]], np.int32),
            ),
        }
    )


def test_effects_are_not_dropped():
    jaxpr = jax.make_jaxpr(lambda x: [jax.debug.print("{}", x), x][1])(X)
    assert numpy_lax.supported(jaxpr) is not None


def test_special_functions():
    a, b, x = (floats(20, low=0.2, high=4, dtype=np.float64, seed=i) for i in range(3))
    u = floats(20, low=0.05, high=0.95, dtype=np.float64)
    agree(
        {
            "igamma": (lax.igamma, a, x),
            "igammac": (lax.igammac, a, x),
            "betainc": (lax.betainc, a, b, u),
            "polygamma": (lax.polygamma, np.floor(a), x),
            "zeta": (lax.zeta, a + 1.1, x),
        },
        ulps=2000,
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_wrap_as_in_xla(dtype):
    info = np.iinfo(dtype)
    some = np.array([0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.min, info.min + 1, info.max // 2], dtype)
    a, b = (m.ravel() for m in np.meshgrid(some, some))
    cases = {
        n: (getattr(lax, n), a, b)
        for n in "add sub mul div rem max min bitwise_and bitwise_or bitwise_xor lt ge mulhi".split()
        if hasattr(lax, n)
    }
    shifts = np.tile(np.array([0, 1, 3, 7, 8, 31, 32, 63, 64, 100]).astype(dtype), (len(some), 1))
    column = np.broadcast_to(some[:, None], shifts.shape)
    for n in "shift_left shift_right_arithmetic shift_right_logical".split():
        cases[n] = getattr(lax, n), column, shifts
    for n in "sign population_count clz bitwise_not neg".split():
        cases[n] = getattr(lax, n), some
    if info.min:
        cases["abs"] = lax.abs, some
    cases["integer_pow"] = lambda x: lax.integer_pow(x, 3), some
    cases["sum"] = lambda x: lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None), a
    cases["cumsum"] = lax.cumsum, a
    cases["cumprod"] = lax.cumprod, a
    cases["dot"] = lambda x, y: lax.dot(x, y), a.reshape(11, 11), b.reshape(11, 11)
    agree(cases)


def test_complex_functions():
    z = (floats(20) + 1j * floats(20, seed=1)).astype(np.complex64)
    w = (floats(20, seed=2) + 1j * floats(20, seed=3)).astype(np.complex64)
    cases = {
        n: (getattr(lax, n), z)
        for n in "exp log sin cos tanh sqrt rsqrt abs real imag conj neg sign expm1 log1p logistic exp2 square".split()
    }
    cases |= {n: (getattr(lax, n), z, w) for n in "add sub mul div pow eq".split()}
    cases["complex"] = lax.complex, X, Y
    cases["small log1p"] = lax.log1p, z * np.complex64(1e-6)
    cases["dot"] = lambda a, b: jnp.vdot(a, b), z, w
    cases["cumlogsumexp"] = lambda z: jnp.cumsum(z), z
    agree(cases, ulps=16, scale=0.1)


def test_casts():
    kinds = [
        np.bool_,
        np.int8,
        np.uint8,
        np.int32,
        np.int64,
        np.uint16,
        np.float16,
        ml_dtypes.bfloat16,
        np.float32,
        np.float64,
    ]
    small = np.array([0, 1, 2, 3, 100, 127, 5, 0])
    cases = {
        f"{np.dtype(a)} to {np.dtype(b)}": (lambda x, b=b: lax.convert_element_type(x, b), small.astype(a))
        for a in kinds
        for b in kinds
    }
    fine = np.array([0.1, 1 / 3, 1e-6, 65504.0, 1e30, np.nan, np.inf, -0.0, 1 + 2.0**-9, 1 + 3 * 2.0**-9])
    for a in (np.float32, np.float64):
        for b in (np.float16, ml_dtypes.bfloat16, np.float32):
            cases[f"rounding {np.dtype(a)} to {np.dtype(b)}"] = (
                lambda x, b=b: lax.convert_element_type(x, b),
                fine.astype(a),
            )
    cases["truncation"] = lambda x: x.astype(np.int32), np.array([-1.9, 1.9, -0.5, 2e9])
    cases["to complex"] = lambda x: x.astype(np.complex64), X
    cases["bits"] = lambda x: lax.bitcast_convert_type(x, np.int32), X
    cases["narrower bits"] = lambda x: lax.bitcast_convert_type(x, np.uint8), X
    cases["wider bits"] = lambda x: lax.bitcast_convert_type(x, np.float64), X[:, :2]
    for e, m in ((5, 10), (8, 7), (4, 3), (8, 23)):
        cases[f"reduce_precision {e} {m}"] = lambda x, e=e, m=m: lax.reduce_precision(x, e, m), fine.astype(np.float32)
    agree(cases, ulps=0)


def test_shapes():
    x = floats(2, 3, 4)
    bits = np.array([[True, False], [True, True]])
    cases = {
        "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (2, 5, 3, 4)), x),
        "large": (lambda x: jnp.broadcast_to(x, (300, 2, 3, 4)), x),
        "scalar": (lambda s: jnp.full((2, 3), s), np.float32(2)),
        "reshape": (lambda x: x.T.reshape(6, 4), x),
        "transpose": (lambda x: x.transpose(2, 0, 1), x),
        "squeeze": (lambda x: x[:, :1].squeeze(1), x),
        "slice": (lambda x: x[1:, ::2, 1:3], x),
        "flip": (lambda x: jnp.flip(x, (0, 2)), x),
        "concatenate": (lambda x: jnp.concatenate([x, x], 1), x),
        "stack": (lambda x: jnp.stack([x, x], -1), x),
        "unstack": (lambda x: jnp.unstack(x, axis=1), x),
        "split": (lambda x: jnp.split(x, [1, 3], 2), x),
        "tile": (lambda x: jnp.tile(x, (2, 1, 3)), x),
        "iota": (lambda x: x + lax.broadcasted_iota(np.float32, (2, 3, 4), 1), x),
        "roll": (lambda x: jnp.roll(x, 2, 1), x),
        "tril": (jnp.tril, x),
        "where": (lambda x: jnp.where(x > 0, x, -1), x),
        "select_n": (lambda i, x: lax.select_n(i, x, -x, 2 * x), np.array([[0, 1, 2, 1, 0]] * 3, np.int32), X),
        "select by a scalar": (lambda i, x: lax.select_n(i, x, -x), np.bool_(True), X),
        "all": (lambda b: jnp.all(b, 0), bits),
        "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, i, i), (1, 2, 2)), x, np.int32(1)),
        "dynamic_slice outside": (lambda x, i: lax.dynamic_slice(x, (i, i, i), (1, 2, 2)), x, np.int32(7)),
        "dynamic_update_slice": (lambda x, i: lax.dynamic_update_slice(x, x[:1, :1] * 2, (i, i, i)), x, np.int32(1)),
        "pad": (lambda x: lax.pad(x, np.float32(7), ((1, 2, 0), (0, 0, 2), (-1, -1, 0))), x),
        "pad negative interior": (lambda x: lax.pad(x, np.float32(0), ((0, 0, 0), (-1, 2, 1), (2, -4, 3))), x),
        "pad away": (lambda x: lax.pad(x, np.float32(0), ((0, 0, 0), (-3, 1, 0), (0, 0, 0))), x),
        "meshgrid": (lambda x: jnp.meshgrid(x[0, 0], x[0, :, 0]), x),
        "searchsorted": (lambda x: jnp.searchsorted(jnp.sort(x[0, 0]), x[1, 1]), x),
        "nothing": (lambda x: x, x),
        "constant": (lambda x: jnp.ones(3), x),
        "0-d": (lambda s: jnp.tanh(s * 2 + 1).reshape(1, 1), np.float32(0.3)),
    }
    agree(cases, ulps=100, grad_scale=1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_reductions(dtype):
    x = floats(4, 3, 5).astype(dtype)
    with_nan = x.copy()
    with_nan[1, 2, 3] = np.nan
    cases = {}
    for name in "sum prod max min argmax argmin mean var nanmax nansum cumsum cumprod logaddexp.accumulate".split():
        f = getattr(jnp, name) if "." not in name else lambda x, axis: lax.cumlogsumexp(x, axis)
        cases[name], cases[name + " nan"] = (lambda x, f=f: f(x, axis=1), x), (lambda x, f=f: f(x, axis=1), with_nan)
    for name in ("cummax", "cummin", "cumsum"):
        cases[name + " reversed"] = lambda x, f=getattr(lax, name): f(x, axis=2, reverse=True), with_nan
    cases["several axes"] = lambda x: jnp.sum(x, (0, 2)), x
    cases["empty max"] = lambda x: jnp.max(x[:, :0], 1, initial=-jnp.inf), x
    cases["softmax"], cases["logsumexp"] = (jax.nn.softmax, x), (lambda x: jax.nn.logsumexp(x, axis=0), x)
    cases["generic"] = lambda x: lax.reduce(x, dtype(1), lambda a, b: a * b + 1, (0,)), x
    cases["generic pair"] = (
        lambda x: lax.reduce(
            (x, -x), (dtype(-9), dtype(9)), lambda a, b: (lax.max(a[0], b[0]), lax.min(a[1], b[1])), (0, 2)
        ),
        x,
    )
    cases["bits"] = lambda i: (lax.reduce_and_p.bind(i, axes=(0,)), lax.reduce_xor_p.bind(i, axes=(0,))), integers(6, 4)
    agree(cases, ulps=8 if dtype == np.float32 else 2, scale=0.5)


def test_reduction_gradients():
    x = floats(4, 3, 5)
    agree(
        {n: (lambda x, f=getattr(jnp, n): f(x, axis=1), x) for n in "sum prod max min var cumsum cumprod sort".split()}
        | {
            "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=0), x),
            "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), x),
            "cummax": (lambda x: lax.cummax(x, 1), x),
        },
        scale=0.5,
        grad_scale=1.0,
    )


def test_sorting():
    x = np.array([[0.0, -0.0, np.nan, 1, 0, -0.0, np.inf, -np.inf], [3, 1, 2, 1, 3, 2, 1, 0]], np.float32)
    i = integers(2, 8, low=0, high=3)
    iota = np.tile(np.arange(8, dtype=np.int32), (2, 1))
    cases = {
        "sort": (lambda x: lax.sort(x), x),
        "bfloat16": (lambda x: lax.sort(x), x.astype(ml_dtypes.bfloat16)),
        "carried": (lambda x, i: lax.sort((x, i), num_keys=1), x, iota),
        "two keys": (lambda i, x, k: lax.sort((i, x, k), num_keys=2), i, x, iota),
        "first axis": (lambda x, i: lax.sort((x, i), dimension=0), x, iota),
        "one row": (lambda x, i: lax.sort((x, i)), x[0], iota[0]),
        "argsort": (lambda x: jnp.argsort(x, descending=True), x),
        "top_k": (lambda x: lax.top_k(x, 5), x),
        "top_k int": (lambda i: lax.top_k(i, 5), i),
        "bool": (lambda x: lax.sort(x > 0), x),
        "unique": (lambda i: jnp.unique(i, size=3), i),
        "median": (jnp.median, x[1]),
    }
    long = np.round(floats(3, 200)) / 2 * np.where(floats(3, 200, seed=1) > 0, 1, -1)
    long[0, 5:9] = np.nan
    for kind in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint32, np.int32):
        cases[f"long {np.dtype(kind)}"] = (
            lambda x: (lax.sort((x, lax.broadcasted_iota(np.int32, x.shape, 1))), lax.top_k(x, 7)),
            np.nan_to_num(long * 4).astype(kind) if np.dtype(kind).kind in "iu" else long.astype(kind),
        )
    agree(cases)
    agree({"sort": (lambda x: lax.sort(x), X), "top_k": (lambda x: lax.top_k(x, 2), X)}, grad_scale=0)


def test_random_numbers_are_jaxs():
    def draw(seed):
        key = jax.random.key(seed)
        a, b = jax.random.split(jax.random.fold_in(key, 7))
        keys = jax.random.split(b, (2, 3))
        return [
            jax.random.uniform(a, (5,)),
            jax.random.bits(b, (4,), np.uint8),
            jax.random.bits(b, (4,), np.uint16),
            jax.random.bits(a, (2, 2), np.uint64),
            jax.random.randint(a, (6,), 0, 10),
            jax.random.permutation(b, 7),
            jax.vmap(lambda k: jax.random.uniform(k, (2,)))(keys[0]),
            jax.random.key_data(keys),
        ]

    for seed in (0, 12345, -3):
        with jax.enable_x64(True):
            want = jax.jit(draw)(seed)
        for got, y in zip(interpret(draw, seed), want):
            same(got, y, 0)
    with jax.enable_x64(True):
        want = jax.random.normal(jax.random.key(1), (50,))
    same(interpret(lambda: jax.random.normal(jax.random.key(1), (50,)))[0], want, 64)


def test_what_is_missing_is_named():
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(lambda x: lax.igamma_grad_a(x, x) + 1)(X)
    assert numpy_lax.supported(jaxpr) == "igamma_grad_a"
    with pytest.raises(NotImplementedError, match="igamma_grad_a"):
        numpy_lax.compile_jaxpr(jaxpr)
    dead = jax.make_jaxpr(lambda x: (lax.igamma_grad_a(x, x), x + 1)[1])(X)
    assert numpy_lax.supported(dead) is None


def test_a_wrong_number_of_arrays_is_refused():
    run = numpy_lax.compile_jaxpr(jax.make_jaxpr(lambda x, y: x + y)(X, Y))
    with pytest.raises(TypeError, match="expected 2 arrays, got 1"):
        run(X)


def test_nothing_is_held_after_a_run():
    run = numpy_lax.compile_jaxpr(jax.make_jaxpr(lambda x: jnp.exp(x) * 2 + x)(X))
    first = run(X)[0]
    second = run(Y)[0]
    np.testing.assert_array_equal(first, run(X)[0])
    assert not np.shares_memory(first, second)
