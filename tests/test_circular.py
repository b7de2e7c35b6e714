"""sin, cos and rsqrt of large float32 arrays in compiled programs: as exact as the C library's, at every argument."""

import jax
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program
from torchlike.ops import circular

N = circular.MANY + 3
RNG = np.random.default_rng(0)
ARGUMENTS = {
    "angles": RNG.uniform(-7, 7, N),
    "large": RNG.standard_normal(N) * 1e6,
    "to the limit": np.concatenate([np.linspace(-(2.0**28), 2.0**28, N - 5), np.arange(5) * np.pi / 2]),
    "too large": np.append(RNG.standard_normal(N - 1), 1e25),
    "multiples of pi": np.arange(-N // 2, N // 2) * (np.pi / 2),
    "small": RNG.standard_normal(N) * 1e-20,
    "not finite": np.append(RNG.standard_normal(N - 3), [np.nan, np.inf, -np.inf]),
}


def units(ours, exact):
    """The largest error in units of the last place."""
    finite = np.isfinite(exact)
    assert np.array_equal(np.isnan(ours), np.isnan(exact))
    unit = np.spacing(np.abs(exact[finite]).astype(np.float32)).astype(np.float64)
    return (np.abs(ours[finite].astype(np.float64) - exact[finite]) / unit).max()


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_circular_functions(name, arguments):
    x = ARGUMENTS[arguments].astype(np.float32)
    with program.tier("compiled"):
        t = torchlike.tensor(x, requires_grad=True)
        y = getattr(torchlike, name)(t)
        y.sum().backward()
        ours, slope = y.detach().numpy(), t.grad.numpy()
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
        exact = {"sin": np.sin(wide), "cos": np.cos(wide), "slope of sin": np.cos(wide), "slope of cos": -np.sin(wide)}
    assert units(ours, exact[name]) <= 1 and units(slope, exact[f"slope of {name}"]) <= 1


def test_rsqrt():
    info = np.finfo(np.float32)
    x = np.concatenate([RNG.uniform(0, 10, N), np.logspace(-37, 38, N), [info.tiny, info.max, info.smallest_subnormal, 0, -0.0, np.inf, np.nan, -1]])
    x = x.astype(np.float32)
    with program.tier("compiled"):
        ours = torchlike.tensor(x).rsqrt().numpy()
    theirs = torch.tensor(x).rsqrt().numpy()
    finite = np.isfinite(theirs) & (np.abs(x) >= info.tiny)  # XLA may take the smallest numbers for zeros
    assert units(ours[finite], 1 / np.sqrt(x[finite].astype(np.float64))) <= 1
    for k in np.flatnonzero(~np.isfinite(theirs)):
        assert np.array_equal(ours[k], theirs[k], equal_nan=True), x[k]


@pytest.mark.parametrize("function", [circular._sine, circular._cosine, circular._rsqrt])
def test_jax_differentiates_them(function):
    plain = {circular._sine: jax.numpy.sin, circular._cosine: jax.numpy.cos, circular._rsqrt: lambda x: x ** -0.5}[function]
    with jax.enable_x64(True):  # as programs are compiled
        x = jax.numpy.linspace(0.5, 3, N, dtype=np.float32)
        for f, g in ((function, plain), (jax.grad(lambda x: function(x).sum()), jax.grad(lambda x: plain(x).sum()))):
            assert np.allclose(f(x), g(x), rtol=1e-5, atol=1e-6)
        assert np.allclose(jax.vmap(function)(x[:, None])[:, 0], plain(x), rtol=1e-5, atol=1e-6)


def test_a_gpu_keeps_its_own():
    for f in (circular._sine, circular._cosine, circular._rsqrt):
        text = jax.jit(f).trace(jax.ShapeDtypeStruct((N,), np.float32)).lower(lowering_platforms=("cuda",)).as_text()
        assert "f64" not in text and "select" not in text


def test_under_a_users_own_jit():
    """JAX has no doubles there by default."""
    x = ARGUMENTS["large"].astype(np.float32)
    sine = jax.jit(lambda t: torchlike.sin(t))(torchlike.tensor(x))
    assert units(sine.numpy(), np.sin(x.astype(np.float64))) <= 1
