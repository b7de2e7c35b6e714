"""The NumPy evaluation of contractions, convolutions, windows, linear algebra, loops and networks equals XLA's."""

import time

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from numpy_lax_check import agree, floats, integers, interpret, same

from torchlike._core import numpy_lax


def complex_floats(*shape):
    return (floats(*shape) + 1j * floats(*shape, seed=1)).astype(np.complex64)


def test_dot_general():
    a, b, v = floats(4, 5), floats(5, 3), floats(5)
    t, u = floats(2, 3, 4, 5), floats(2, 5, 3, 6)
    cases = {
        "matrices": (jnp.matmul, a, b),
        "left transposed": (lambda a, b: a.T @ b, floats(5, 4), b),
        "right transposed": (lambda a, b: a @ b.T, a, floats(3, 5)),
        "both": (lambda a, b: a.T @ b.T, floats(5, 4), floats(3, 5)),
        "vector": (jnp.matmul, a, v),
        "vector left": (jnp.matmul, v, b),
        "inner": (jnp.vdot, v, v),
        "outer": (jnp.outer, v, v),
        "batch": (lambda t, u: jnp.einsum("bhij,bjhk->bhik", t, u), t, u),
        "batch last": (lambda t, u: jnp.einsum("bhij,bjhk->hikb", t, u), t, u),
        "linear": (lambda t, b: t @ b, t, b),
        "two contracted": (lambda t, u: jnp.einsum("bhij,bjhk->bik", t, u), t, u),
        "swapped": (lambda t, u: jnp.einsum("bhij,cjhk->bick", t, u), t, u),
        "sliced": (lambda a, b: a[:, ::2] @ b[::2, ::2], a, b),
        "stepped both": (lambda t: t[..., ::2, ::2] @ t[..., ::2, ::2].swapaxes(2, 3), t),
        "broadcast": (lambda a: jnp.broadcast_to(a[0], (6, 5)) @ a.T, a),
        "empty": (lambda a, b: a[:, :0] @ b[:0], a, b),
        "double": (jnp.matmul, a.astype(np.float64), b.astype(np.float64)),
        "complex": (jnp.matmul, complex_floats(3, 4), complex_floats(4, 2)),
    }
    agree(cases, scale=1.0, grad_scale=1.0)
    low = {
        "int8 to int32": (
            lambda x, y: lax.dot(x, y, preferred_element_type=np.int32),
            integers(3, 4, dtype=np.int8),
            integers(4, 2, dtype=np.int8),
        ),
        "int8": (lambda x, y: lax.dot(x, y), integers(3, 4, dtype=np.int8), integers(4, 2, dtype=np.int8)),
        "int64": (jnp.matmul, integers(3, 4, dtype=np.int64), integers(4, 2, dtype=np.int64)),
        "bfloat16": (jnp.matmul, a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)),
        "float16": (jnp.matmul, a.astype(np.float16), b.astype(np.float16)),
        "bfloat16 to float32": (
            lambda x, y: lax.dot(x, y, preferred_element_type=np.float32),
            a.astype(ml_dtypes.bfloat16),
            b.astype(ml_dtypes.bfloat16),
        ),
        "ragged": (
            lambda x, y, g: lax.ragged_dot(x, y, g),
            floats(7, 4),
            floats(3, 4, 2),
            np.array([2, 0, 4], np.int32),
        ),
    }
    agree(low, scale=1.0)


def conv(strides=(1, 1), padding="SAME", numbers=None, **kw):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **kw)


def test_convolution():
    x, w = floats(2, 4, 7, 6), floats(6, 4, 3, 3)
    cases = {
        "same": (conv(), x, w),
        "to no channels, spread out": (conv(padding=((1, 1), (1, 1)), lhs_dilation=(2, 2)), x, w[:0]),
        "strides": (conv((2, 1), ((1, 1), (0, 2))), x, w),
        "dilated": (conv(rhs_dilation=(2, 1)), x, w),
        "transposed": (conv(padding=((2, 2), (2, 2)), lhs_dilation=(2, 2)), x, w),
        "groups": (conv(feature_group_count=2), x, floats(6, 2, 3, 3)),
        "depthwise": (conv(feature_group_count=4), x, floats(4, 1, 3, 3)),
        "depthwise stride": (conv((2, 2), feature_group_count=4), x, floats(4, 1, 3, 3)),
        "depthwise doubled": (conv(feature_group_count=4), x, floats(8, 1, 3, 3)),
        "batch groups": (conv(batch_group_count=2), x, w),
        "1x1": (conv((2, 2), "VALID"), x, floats(6, 4, 1, 1)),
        "large kernel": (conv(padding="VALID"), x, floats(5, 4, 7, 5)),
        "large kernel on few points, spread out": (conv(padding=((3, 4), (2, 0)), lhs_dilation=(2, 3)), x, floats(5, 4, 10, 9)),
        "large kernel on spread out points, cut": (conv(padding=((-1, 2), (3, -2)), lhs_dilation=(3, 2)), x, floats(5, 4, 9, 8)),
        "large grouped kernel": (conv(padding="VALID", feature_group_count=2), x, floats(4, 2, 7, 5)),
        "negative padding": (conv(padding=((-1, 2), (-2, 0))), x, w),
        "channels last": (conv(numbers=("NHWC", "HWIO", "NHWC")), floats(2, 7, 6, 4), floats(3, 3, 4, 6)),
        "odd layout": (conv(numbers=("CHNW", "HOIW", "HNCW")), floats(4, 7, 2, 6), floats(3, 6, 4, 3)),
        "1-d": (conv((2,), "VALID"), floats(2, 4, 9), floats(5, 4, 3)),
        "3-d": (conv((1, 1, 1), "SAME"), floats(1, 2, 4, 3, 5), floats(3, 2, 2, 3, 2)),
        "empty": (conv(padding="VALID"), x[:0], w),
        "nothing fits": (conv(padding="VALID"), x, floats(5, 4, 8, 3)),
    }
    agree(cases, scale=1.0, grad_scale=1.0)
    agree(
        {
            "bfloat16": (conv(), x.astype(ml_dtypes.bfloat16), w.astype(ml_dtypes.bfloat16)),
            "float64": (conv(), x.astype(np.float64), w.astype(np.float64)),
        },
        scale=1.0,
    )


def window(op, init, size, strides, padding="VALID", **kw):
    return lambda x: lax.reduce_window(x, np.asarray(init, x.dtype), op, size, strides, padding, **kw)


def test_windows():
    x = floats(2, 3, 7, 6)
    tied = np.round(x)
    with_nan = tied.copy()
    with_nan[0, 1, 2, 3] = np.nan
    two, three = (1, 1, 2, 2), (1, 1, 3, 3)
    shifted = ((0, 0), (0, 0), (1, 1), (0, 2))
    cases = {}
    for name, op, init in (("max", lax.max, -np.inf), ("min", lax.min, np.inf), ("sum", lax.add, 0.0)):
        cases |= {
            f"{name} 2": (window(op, init, two, two), tied),
            f"{name} 3": (window(op, init, three, two, shifted), tied),
            f"{name} overlap": (window(op, init, three, (1, 1, 1, 1), "SAME"), x),
        }
    agree(
        cases
        | {
            "sum base dilation": (window(lax.add, 0.0, two, (1, 1, 1, 1), base_dilation=(1, 1, 2, 1)), x),
            "sum dilated": (window(lax.add, 0.0, two, two, window_dilation=(1, 1, 2, 1)), x),
        },
        scale=1.0,
        grad_scale=1.0,
    )
    second = lambda x: jax.jvp(window(lax.max, -np.inf, three, two, shifted), (x,), (jnp.sin(x),))  # noqa: E731
    agree(
        {
            "nan": (window(lax.max, -np.inf, three, two, shifted), with_nan),
            "ints": (window(lax.max, -(2**31), three, two), integers(2, 3, 7, 6)),
            "jvp": (second, x),
            "jvp of ties": (second, tied),
            "bfloat16": (window(lax.add, 0.0, two, two), x.astype(ml_dtypes.bfloat16)),
            "general": (window(lambda a, b: a * b + 1, 0.5, two, two), x),
            "dilated max": (window(lax.max, -np.inf, two, two, window_dilation=(1, 1, 2, 3)), x),
        },
        scale=1.0,
    )
    lower = np.full((1, 1, 3, 3), -np.inf, np.float32)
    agree({"all -inf": (window(lax.max, -np.inf, three, two, shifted), lower)})


@pytest.mark.parametrize("kind", [np.float32, np.complex64])
def test_decompositions(kind):
    a = (complex_floats(2, 4, 4) if kind == np.complex64 else floats(2, 4, 4)) + 3 * np.eye(4, dtype=kind)
    spd = a @ a.conj().swapaxes(1, 2)
    tall, wide = a[:, :, :2], a[:, :2]
    b = a[:, :, :3] + 1
    half = {"symmetrize_input": False}

    def reflectors(a):
        transposed, taus = jnp.linalg.qr(a, "raw")
        return transposed.swapaxes(1, 2), taus

    cases = {
        "cholesky": (jnp.linalg.cholesky, spd),
        "solve": (jnp.linalg.solve, a, b),
        "inv": (jnp.linalg.inv, a),
        "det": (jnp.linalg.det, a),
        "slogdet": (jnp.linalg.slogdet, a),
        "qr": (jnp.linalg.qr, tall),
        "eigh": (lambda s: lax.linalg.eigh(s, **half), spd),
        "svdvals": (lambda a: jnp.linalg.svd(a, compute_uv=False), wide),
        "solve_triangular": (lambda a, b: jax.scipy.linalg.solve_triangular(a[0], b[0], trans=2, lower=True), a, b),
        "pinv": (jnp.linalg.pinv, tall),
        "triangular right": (
            lambda a, b: lax.linalg.triangular_solve(a, b.swapaxes(1, 2), conjugate_a=True, unit_diagonal=True),
            a,
            b,
        ),
        "cho_solve": (lambda s, b: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(s[0]), True), b[0]), spd, b),
    }
    agree(cases, ulps=300, scale=1.0, grad_scale=3.0)
    agree(
        {
            "lu": (lax.linalg.lu, a),
            "lu tall": (lax.linalg.lu, tall),
            "full qr": (lambda a: jnp.linalg.qr(a, "complete"), tall),
            "wide qr": (jnp.linalg.qr, wide),
            "full svd": (jnp.linalg.svd, tall),
            "eig": (lax.linalg.eig, a),
            "householder": (lambda a: lax.linalg.householder_product(*reflectors(a)), tall),
            "schur": (lambda a: lax.linalg.schur(a[0]), a),
            "pivoted qr": (lambda a: jax.scipy.linalg.qr(a[0], mode="economic", pivoting=True), a),
            "ormqr": (
                lambda a: [
                    lax.linalg.ormqr(*reflectors(a), a[:, :, ::-1], left=left, transpose=transpose)
                    for left in (True, False)
                    for transpose in (True, False)
                ],
                a,
            ),
            "hessenberg": (lambda a: lax.linalg.hessenberg(a), a),
            "lstsq": (lambda a, b: jnp.linalg.lstsq(a[0], b[0])[0], a, b),
            "matrix_power": (lambda a: jnp.linalg.matrix_power(a, 5), a),
            "expm": (lambda a: jax.scipy.linalg.expm(a[0]), a),
            "norm": (lambda a: jnp.linalg.norm(a, 2, (1, 2)), a),
            "tridiagonal": (
                lambda a: lax.linalg.tridiagonal_solve(a[0, 0].at[0].set(0), a[0, 1] + 5, a[0, 2].at[-1].set(0), a[0]),
                a,
            ),
        },
        ulps=300,
        scale=1.0,
    )


def test_symmetric_product():
    a, c = floats(2, 4, 3), floats(2, 4, 4)
    agree(
        {
            "symmetric": (
                lambda a, c: lax.linalg.symmetric_product(
                    a, c + c.swapaxes(1, 2), alpha=2.0, beta=0.5, symmetrize_output=True
                ),
                a,
                c,
            )
        },
        scale=1.0,
    )


def test_decompositions_that_fail_are_nan():
    bad = np.stack([np.eye(3), -np.eye(3)]).astype(np.float32)
    agree(
        {
            "cholesky": (jnp.linalg.cholesky, bad),
            "singular": (jnp.linalg.solve, np.zeros((2, 2), np.float32), np.ones((2, 1), np.float32)),
            "eigh": (lambda x: lax.linalg.eigh(x), bad * np.float32(np.nan)),
            "empty": (
                lambda x: (jnp.linalg.qr(x), jnp.linalg.svd(x), jnp.linalg.cholesky(x), jnp.linalg.inv(x)),
                np.zeros((0, 0), np.float32),
            ),
        }
    )


def test_fourier():
    x, z = floats(3, 4, 6), complex_floats(3, 4, 6)
    f = jnp.fft
    agree(
        {
            "fft": (f.fft, z),
            "ifft": (f.ifft, z),
            "rfft": (f.rfft, x),
            "irfft": (f.irfft, z),
            "irfft odd": (lambda z: f.irfft(z, 9), z),
            "fft2": (f.fft2, z),
            "rfftn": (f.rfftn, x),
            "irfftn": (f.irfftn, z),
            "axis": (lambda z: f.fft(z, axis=0), z),
            "shift": (f.fftshift, x),
            "double": (f.rfft, x.astype(np.float64)),
            "padded": (lambda x: f.rfft(x, 11), x),
        },
        ulps=16,
        scale=1.0,
        grad_scale=2.0,
    )


def test_control_flow():
    x = floats(6, 4)

    def collatz(n):
        return lax.while_loop(
            lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0)
        )

    def rnn(w, xs):
        def step(h, x):
            h = jnp.tanh(h @ w + x)
            return h, h * 2

        return lax.scan(step, jnp.zeros(4, np.float32), xs)

    def branches(i, x):
        return lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * 2], x), lax.cond(x[0, 0] > 0, jnp.exp, jnp.negative, x)

    cases = {
        "while": (collatz, np.int64(27)),
        "many whiles": (jax.vmap(collatz), np.array([27, 1, 6], np.int64)),
        "many whiles of tests of fewer dimensions": (jax.vmap(jax.vmap(jnp.gcd)), integers(2, 3), integers(2, 3, seed=1)),
        "fori": (lambda x: lax.fori_loop(0, 5, lambda i, s: s + x[i], jnp.zeros(4, np.float32)), x),
        "scan": (rnn, floats(4, 4), x),
        "reversed": (lambda x: lax.scan(lambda c, v: (c + v, c), x[0], x, reverse=True), x),
        "no xs": (lambda x: lax.scan(lambda c, _: (c * 2, None), x, None, length=3)[0], x),
        "no steps": (lambda x: lax.scan(lambda c, v: (c + v, c), x[0], x[:0]), x),
        "map": (lambda x: lax.map(lambda r: jnp.sort(r) * 2, x), x),
        "branches": (branches, np.int32(1), x),
        "branch outside": (branches, np.int32(9), x),
        "branch below": (branches, np.int32(-9), x),
        "checkpoint": (lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x), x),
        "jit": (lambda x: jax.jit(lambda x: (x, x + 1))(x), x),
        "associative": (lambda x: lax.associative_scan(jnp.add, x), x),
        "platform": (lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), x),
        "known branch": (lambda x: lax.cond(np.bool_(True), jnp.sin, lambda x: lax.igamma(x, x), x), x),
        "custom_vjp": (lambda x: jax.nn.relu(x) + jax.nn.silu(x), x),
        "linear solve": (lambda x: jax.scipy.sparse.linalg.cg(lambda v: 3 * v, x[0])[0], x),
        "barrier": (lambda x: lax.optimization_barrier((x, x + 1)), x),
    }
    without = ("while", "many whiles", "many whiles of tests of fewer dimensions", "branch outside", "branch below", "linear solve")
    agree({n: c for n, c in cases.items() if n not in without}, ulps=16, scale=1.0, grad_scale=1.0)
    agree({n: cases[n] for n in without}, ulps=16, scale=1.0)


NN = "relu relu6 sigmoid silu softplus gelu elu selu celu leaky_relu log_sigmoid soft_sign hard_tanh hard_sigmoid hard_swish glu mish softmax log_softmax standardize squareplus"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_network_functions(dtype):
    x = floats(4, 6, low=-4, high=4).astype(dtype)
    cases = {n: (getattr(jax.nn, n), x) for n in NN.split()} | {
        "exact gelu": (lambda x: jax.nn.gelu(x, approximate=False), x)
    }
    agree(cases, ulps=32 if dtype != ml_dtypes.bfloat16 else 4, scale=1.0, grad_scale=4.0)


def test_numpy_functions_and_gradients():
    x, y, p = floats(4, 5), floats(4, 5, seed=1), floats(4, 5, low=0.2, high=2)
    unary = "sin tan arcsinh arctan cosh expm1 sinc nan_to_num cumsum std ptp diff average gradient".split()
    positive = "log log2 log10 sqrt cbrt reciprocal i0".split()
    binary = "arctan2 hypot maximum logaddexp logaddexp2 fmod mod copysign kron".split()
    cases = {n: (getattr(jnp, n), x) for n in unary} | {n: (getattr(jnp, n), p) for n in positive}
    cases |= {n: (getattr(jnp, n), x, y) for n in binary}
    cases |= {
        "power": (jnp.power, p, y),
        "convolve": (lambda x, y: jnp.convolve(x[0], y[0]), x, y),
        "interp": (lambda x, y: jnp.interp(x[0], jnp.sort(y[0]), y[1]), x, y),
        "cov": (jnp.cov, x),
        "corrcoef": (jnp.corrcoef, x),
        "percentile": (lambda x: jnp.percentile(x, 30.0, 1), x),
        "trace": (jnp.trace, x),
        "vander": (lambda x: jnp.vander(x[0]), x),
        "histogram": (lambda x: jnp.histogram(x, 5), x),
        "polyval": (lambda x, y: jnp.polyval(x[0], y), x, y),
        "pad": (lambda x: jnp.pad(x, 2, "reflect"), x),
        "wrap": (lambda x: jnp.pad(x, 2, "wrap"), x),
        "repeat": (lambda x: jnp.repeat(x, 2, 1), x),
        "resize": (lambda x: jax.image.resize(x, (7, 3), "bilinear"), x),
        "cubic": (lambda x: jax.image.resize(x, (7, 9), "bicubic"), x),
    }
    agree(cases, ulps=64, scale=1.0, grad_scale=4.0)
    i = integers(5, 4, low=1, high=60)
    agree(
        {
            "gcd": (jnp.gcd, i, i[::-1]),
            "floor_divide": (jnp.floor_divide, i, -i[::-1]),
            "mod": (jnp.mod, -i, i[::-1]),
            "bincount": (lambda i: jnp.bincount(i.ravel(), length=60), i),
            "nonzero": (lambda i: jnp.nonzero(i > 9, size=9), i),
            "isin": (jnp.isin, i, i[0]),
            "packbits": (lambda i: jnp.packbits(i > 20), i),
            "digitize": (lambda i: jnp.digitize(i, np.array([10, 20, 30])), i),
            "power": (lambda i: jnp.power(i, 3), i),
            "unique": (lambda i: jnp.unique(i, return_inverse=True, size=9), i),
        }
    )


def test_an_attention_block_and_its_gradient():
    def block(x, wq, wo, w1, w2):
        b, t, c = x.shape
        h = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
        q, k, v = jnp.split((h @ wq).reshape(b, t, 3, 2, c // 2), 3, 2)
        scores = jnp.einsum("bqxhd,bkxhd->bhqk", q, k) / np.float32(np.sqrt(c / 2))
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
        x = x + jnp.einsum("bhqk,bkxhd->bqhd", jax.nn.softmax(scores), v).reshape(b, t, c) @ wo
        return x + jax.nn.gelu(x @ w1) @ w2

    agree(
        {"block": (block, floats(2, 5, 8), floats(8, 24), floats(8, 8), floats(8, 32), floats(32, 8))},
        ulps=64,
        scale=1.0,
        grad_scale=4.0,
    )


def test_evaluation_costs_little_per_equation():
    def chain(x):
        for _ in range(100):
            x = x * 2 + x
        return x

    x = floats(4, 4)
    run = numpy_lax.compile_jaxpr(jax.make_jaxpr(chain)(x))
    best = min(_seconds(lambda: run(x)) for _ in range(20))
    assert best / 200 < 10e-6, best  # measured: 0.7 us; the bound leaves room for a busy machine


def _seconds(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def test_no_jax_runs_during_evaluation(monkeypatch):
    x = floats(3, 4)
    run = numpy_lax.compile_jaxpr(jax.make_jaxpr(lambda x: jax.nn.softmax(jnp.sort(x @ x.T)))(x))
    want = run(x)[0]

    def refuse(*args, **kw):
        raise AssertionError("JAX was asked to run")

    monkeypatch.setattr(jax, "device_put", refuse)
    monkeypatch.setattr(
        jax.core.Primitive if hasattr(jax.core, "Primitive") else jax.extend.core.Primitive, "bind", refuse
    )
    same(run(x)[0], want, 0)


def test_views_of_inputs_are_not_written():
    x = floats(4, 4)
    out = interpret(lambda x: (x.T, x[1:].at[0].add(1.0), lax.cumsum(x, 0)), x)
    assert np.shares_memory(out[0], x) or out[0].base is not None
    np.testing.assert_allclose(out[1][0], x[1] + 1)
