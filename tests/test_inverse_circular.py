"""asin, acos, atan, atan2, tan and fmod of large float32 arrays in compiled programs: as exact as the C library's, at every argument."""

import jax
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program
from torchlike.ops import circular, inverse_circular, remainders

N = circular.MANY + 3
RNG = np.random.default_rng(0)
SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 3e38], np.float32)
TINY = np.finfo(np.float32).tiny  # XLA takes smaller numbers for zeros
PAIRS = [x.astype(np.float32) for x in (RNG.standard_normal(N), RNG.standard_normal(N))]
PAIRS = [np.concatenate([a, b.reshape(-1)]) for a, b in zip(PAIRS, np.meshgrid(SPECIAL, SPECIAL))]
WIDE = np.concatenate([RNG.standard_normal(N), RNG.standard_normal(N) * np.exp(RNG.uniform(-60, 60, N)), SPECIAL]).astype(np.float32)
ARGUMENTS = {"asin": [np.concatenate([RNG.uniform(-1.05, 1.05, N), SPECIAL])], "acos": [np.concatenate([RNG.uniform(-1.05, 1.05, N), SPECIAL])],
             "atan": [WIDE], "atan2": PAIRS, "tan": [np.concatenate([RNG.uniform(-7, 7, N), RNG.standard_normal(N) * 1e6, np.arange(N) * (np.pi / 2)])]}
EXACT = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "tan": np.tan}
KERNELS = [inverse_circular.ARCTAN, inverse_circular.ARCTAN2, inverse_circular.ARCSIN, inverse_circular.ARCCOS, circular._tangent, remainders._compiled]


def run(name, arguments, library):
    tensors = [library.tensor(x, requires_grad=True) for x in arguments]
    out = getattr(library, name)(*tensors)
    (first,) = library.autograd.grad(out.sum(), tensors[:1], create_graph=True)
    (second,) = library.autograd.grad(first.sum(), tensors[:1]) if first.requires_grad else (first,)
    return [t.detach().numpy() for t in (out, first, second)]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_values_and_gradients(name):
    arguments = [x.astype(np.float32) for x in ARGUMENTS[name]]
    with program.tier("compiled"):
        out, *slopes = run(name, arguments, torchlike)
    theirs, *expected = run(name, arguments, torch)
    with np.errstate(all="ignore"):
        exact = EXACT[name](*(x.astype(np.float64) for x in arguments))
    assert np.array_equal(np.isnan(out), np.isnan(theirs))
    some = np.isfinite(theirs)
    assert np.array_equal(out[~some], theirs[~some], equal_nan=True) and np.array_equal(np.signbit(out[some]), np.signbit(theirs[some]))
    assert (abs(out[some] - exact[some]) <= np.maximum(np.spacing(abs(exact[some]).astype(np.float32)), TINY)).all()
    calm = np.all([(abs(x) > 1e-6) & (abs(x) < 1e6) for x in arguments], 0)  # others overflow in one library or the other
    for ours, theirs in zip(slopes, expected):
        assert np.allclose(ours[calm], theirs[calm], rtol=2e-4, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("far", [False, True])
def test_remainders_are_exact(name, far):
    x, y = PAIRS
    x = x * np.float32(1e20) if far else x
    y = np.concatenate([y[:N] * np.float32(1e-3), y[N:]])
    with np.errstate(all="ignore"):
        y = np.where(np.isinf(x / y) & np.isfinite(x) & (y != 0), np.float32(1), y)  # torch's vector instructions have NaN for these
    if not far:
        y = np.where(abs(y) == np.float32(1e-30), np.float32(1), y)  # quotients that doubles hold
    with program.tier("compiled"):
        ours = getattr(torchlike, name)(torchlike.tensor(x), torchlike.tensor(y)).numpy()
    theirs = getattr(torch, name)(torch.tensor(x), torch.tensor(y)).numpy()
    assert np.array_equal(ours, theirs, equal_nan=True)
    whole = np.arange(N, dtype=np.float32) * np.float32(0.3)
    with program.tier("compiled"):
        ours = getattr(torchlike, name)(torchlike.tensor(whole), 0.3).numpy()
    assert np.array_equal(ours, getattr(torch, name)(torch.tensor(whole), 0.3).numpy())


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_gpu_keeps_its_own(kernel):
    given = [jax.ShapeDtypeStruct((N,), np.float32)] * (2 if kernel in KERNELS[1::4] else 1)
    assert "f64" not in jax.jit(kernel).trace(*given).lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_under_a_users_own_jit_and_under_vmap(name):
    arguments = [x.astype(np.float32) for x in ARGUMENTS[name]]
    f = getattr(torchlike, name)
    expected = getattr(torch, name)(*map(torch.tensor, arguments)).numpy()
    made = jax.jit(lambda *given: f(*given))(*map(torchlike.tensor, arguments)).numpy()
    assert np.allclose(made, expected, rtol=1e-5, atol=1e-6, equal_nan=True) or name == "tan"  # JAX's own, in float32
    with program.tier("compiled"):
        mapped = torchlike.vmap(f)(*(torchlike.tensor(np.stack([x, x[::-1]])) for x in arguments)).numpy()
    assert np.allclose(mapped[0], expected, rtol=1e-5, atol=1e-6, equal_nan=True) and np.array_equal(mapped[1], mapped[0][::-1], equal_nan=True)
