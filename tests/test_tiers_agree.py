"""What both tiers have in common with torch where functions have exact results, leave their types' range, or round after each operation."""
import threading

import numpy as np
import pytest
import scipy.special
import torch

import torchlike as tl
from torchlike._core import executor

POWERS = 2.0 ** np.arange(-60, 60)
TENS = np.array([float(f"1e{k}") for k in range(-30, 31)])
EXACT = {
    "log2": lambda t, d: t.log2(t.tensor(POWERS, dtype=d)), "log10": lambda t, d: t.log10(t.tensor(TENS, dtype=d)),
    "exp2": lambda t, d: t.exp2(t.arange(-60, 60).to(d)), "lgamma": lambda t, d: t.lgamma(t.tensor([1.0, 2.0], dtype=d)),
    "round": lambda t, d: t.round(t.arange(-40, 40).to(d) / 8, decimals=2), "** -2": lambda t, d: t.arange(1, 100).to(d) ** -2,
    "x / y / z": lambda t, d: t.arange(1, 100).to(d) / 3 / 7, "x / (y / z)": lambda t, d: t.arange(1, 100).to(d) / (t.arange(2, 101).to(d) / 7),
    "out of range": lambda t, d: t.full((3,), 1e30, dtype=d) / 1e25 / 1e25, "softplus": lambda t, d: t.nn.functional.softplus(t.tensor([20.01, 25, 30], dtype=d)),
    "arange": lambda t, d: t.cat([t.arange(*x, dtype=d) for x in ((-8, 8, 0.1), (-0.75, 0.82, 0.05), (3, 1, -0.01), (0, 0.4, 0.03), (-3, 90), (1e7, 1e7 + 9, 0.3))]),
    "linspace": lambda t, d: t.cat([t.linspace(-5, 7, n, dtype=d) for n in (2, 17, 300)]),
}


def observed(kind, run, *args):
    with executor.tier(kind):
        made = run(tl, *args)
        repr(made)
    return made.double().numpy()


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EXACT)
def test_exact_results(name, dtype, kind):
    f = EXACT[name]
    got = observed(kind, lambda t: f(t, getattr(t, dtype)))
    np.testing.assert_array_equal(got, f(torch, getattr(torch, dtype)).double().numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["erfcx", "log_ndtr"])
def test_far_tails(name, dtype):
    x = np.concatenate([np.linspace(-5, 12 if dtype == "float32" else 36, 2000), [1e3, 1e10, np.inf, -np.inf, np.nan, 0]])
    got = observed("compiled", lambda t: getattr(t.special, name)(t.tensor(x, dtype=getattr(t, dtype))))
    np.testing.assert_allclose(got, getattr(torch.special, name)(torch.tensor(x, dtype=getattr(torch, dtype))).double().numpy(), rtol=1e-5 if dtype == "float32" else 1e-13)


HALVES = {
    "chain": lambda t, x: t.nn.functional.gelu((x * 1.7 + x * x).exp().log() * 3 - x) * x.sin() + (x * x * x) / 7,
    "overflow between": lambda t, x: (x * 6).exp().log() + (x * 5000) * 5000 / 5000, "softplus": lambda t, x: t.nn.functional.softplus(x * 8),
    "hardswish": lambda t, x: t.nn.functional.hardswish(x * 5000), "exp2": lambda t, x: t.exp2(x * 5), "silu": lambda t, x: t.nn.functional.silu(x * 6),
    "mish": lambda t, x: t.nn.functional.mish(x), "sinh": lambda t, x: t.sinh(x * 3), "reciprocal": lambda t, x: 3 / x + x.reciprocal(), "fourth power": lambda t, x: x ** 4,
    "sums": lambda t, x: (x.reshape(30, -1).sum(1, keepdim=True) - x.reshape(30, -1)) * 0.1,
}


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", HALVES)
def test_halves_are_rounded_after_each_operation(name, dtype, kind):
    """To the last bit, but for what the functions themselves lose."""
    x = np.random.default_rng(0).uniform(-2, 2, 3000)
    got = observed(kind, lambda t: HALVES[name](t, t.tensor(x).to(getattr(t, dtype))))
    want = HALVES[name](torch, torch.tensor(x).to(getattr(torch, dtype))).double().numpy()
    apart = ~((got == want) | (np.isnan(got) & np.isnan(want)))
    assert apart.mean() < 2e-3, apart.mean()
    np.testing.assert_allclose(got[apart], want[apart], rtol=1e-2)


def test_gradients_of_halves():
    """Derivatives of activations are computed in 32 bits too: softplus'(x) of a float16 x above 11 needs exp(x)."""
    x = np.random.default_rng(0).uniform(-20, 20, 3000)

    def run(t, f):
        leaf = t.tensor(x).half().requires_grad_()
        (g,) = t.autograd.grad(f(t.nn.functional)(leaf).sum(), leaf)
        return g
    for f in (lambda F: F.softplus, lambda F: F.silu, lambda F: F.gelu, lambda F: F.mish, lambda F: F.elu, lambda F: F.logsigmoid):
        for kind in ("numpy", "compiled"):
            got, want = observed(kind, run, f), run(torch, f).double().numpy()
            np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-6)


def test_numpy_inside_a_program_keeps_64_bits():
    """XLA calls it on whichever thread has time, where JAX knows no 64 bits."""
    x, failures = np.linspace(-5, 5, 12000), []

    def run():
        try:
            for _ in range(5):
                np.testing.assert_allclose((tl.special.bessel_j0(tl.tensor(x)) * 2).numpy(), scipy.special.j0(x) * 2, rtol=1e-15)
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=run) for _ in range(3)]
    with executor.tier("compiled"):  # it holds for all threads: were each to force it, the last to end would leave it so
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
def test_gradient_of_digamma(kind):
    x = [-9.95, -1.3, -0.3, 0.3, 0.5, 3, 50, 1e6, np.inf]

    def run(t):
        leaf = t.tensor(x, dtype=t.float64, requires_grad=True)
        (g,) = t.autograd.grad(t.digamma(leaf).sum(), leaf)
        return g
    np.testing.assert_allclose(observed(kind, run), run(torch).numpy(), rtol=1e-9)


def test_polygamma_of_large_negative_numbers_ends():
    assert observed("compiled", lambda t: t.polygamma(2, t.tensor([-1e20, -np.inf, -3, -2.5]))).tolist()[:3] == [-np.inf] * 3


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
def test_gradient_of_a_divisor_whose_square_leaves_the_range(kind):
    def run(t):
        x, y = t.full((5,), 1e30), t.full((5,), 1e25, requires_grad=True)
        (g,) = t.autograd.grad((x / y).sum(), y)
        return g
    np.testing.assert_allclose(observed(kind, run), run(torch).numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_common_divisors_and_multiples(dtype):
    """The least number has no absolute value: with another like it, of 32 bits or 64, it ends torch's process."""
    info = torch.iinfo(getattr(torch, dtype))
    x = [info.max, 12, 64, 0, 6, 127, *([info.min, info.min + 1] if info.bits < 32 else [])]
    pairs = np.array([(a, b) for a in x for b in x], dtype)
    for name in ("gcd", "lcm"):
        got = observed("compiled", lambda t, name=name: getattr(t, name)(t.tensor(pairs[:, 0]), t.tensor(pairs[:, 1])))
        np.testing.assert_array_equal(got, getattr(torch, name)(torch.tensor(pairs[:, 0]), torch.tensor(pairs[:, 1])).double().numpy())
    least = observed("compiled", lambda t: t.gcd(t.tensor([info.min], dtype=getattr(t, dtype)), t.tensor(5).to(getattr(t, dtype))))
    assert least.item() == (-1 if info.min else 5)


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
def test_polynomials_of_any_degree_end(kind):
    x, n = [-3.0, -1, -0.3, 0.5, 1, 2, np.inf], [0.0, 3, 9, 33, 1001, np.inf, -np.inf, 1e20]
    for name in ("t", "u", "v", "w"):
        got = observed(kind, lambda t, name=name: getattr(t.special, f"chebyshev_polynomial_{name}")(t.tensor(x, dtype=t.float64)[:, None], t.tensor(n, dtype=t.float64)))
        want = getattr(torch.special, f"chebyshev_polynomial_{name}")(torch.tensor(x, dtype=torch.float64)[:, None], torch.tensor(n, dtype=torch.float64))
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
def test_incomplete_gammas(kind):
    numbers = [0, 0.5, 1, 3, 100, 1e4, 1e6, np.inf, -1]
    for name, f in (("gammainc", torch.special.gammainc), ("gammaincc", torch.special.gammaincc)):
        got = observed(kind, lambda t, name=name: getattr(t.special, name)(t.tensor(numbers)[:, None], t.tensor(numbers)))
        np.testing.assert_allclose(got, f(torch.tensor(numbers)[:, None], torch.tensor(numbers)).double().numpy(), rtol=2e-4, atol=1e-30)


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
def test_infinities_stay_where_they_are(kind):
    image = [[1, np.inf, 3, 4], [5, -np.inf, 7, np.nan], [1, 2, 3, 4]]
    for size in ((5, 7), (6, 8), (2, 3)):
        for mode in ("nearest", "nearest-exact"):
            def run(t, size=size, mode=mode):
                return t.nn.functional.interpolate(t.tensor(image)[None, None], size, mode=mode)
            np.testing.assert_array_equal(observed(kind, run), run(torch).double().numpy())
    rows = [[3, 4], [np.inf, 1], [np.nan, 1]]

    def renormed(t):
        return t.nn.functional.embedding(t.arange(3), t.tensor(rows), max_norm=1.0)
    np.testing.assert_allclose(observed(kind, renormed), renormed(torch).double().numpy(), rtol=1e-6)
