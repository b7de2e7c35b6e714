"""Running sums, products and extremes in compiled programs: vectors that are cut into columns, and rows; values and two gradients."""
import jax
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import history, program
from torchlike.ops import scans

RNG = np.random.default_rng(0)
SHAPES = [((2000,), 0), ((3, 700), 1), ((300, 5), 0), ((2, 257, 3), 1), ((1500, 4), 1)]
NAMES = ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]


def values(name, shape, kind):
    x = RNG.standard_normal(shape)
    if name == "cumprod":
        x = 1 + 0.01 * x
    if name in ("cummax", "cummin"):
        x = np.round(4 * x + 3)  # ties
    x = x.astype(np.float32)
    flat = x.reshape(-1)
    if kind == "zeros":
        flat[RNG.integers(flat.size)] = 0
    elif kind == "nan":
        flat[flat.size // 2:][RNG.integers(0, flat.size // 2, 2)] = np.nan
    return x


def run(library, name, x, dim):
    t = library.tensor(x, requires_grad=True)
    made = getattr(library, name)(t, dim)
    out = made[0] if isinstance(made, tuple) else made
    weights = library.tensor(np.linspace(-1, 1, x.size, dtype=np.float32).reshape(x.shape))
    (first,) = library.autograd.grad((out * weights).sum(), t, create_graph=True)
    results = [*(made if isinstance(made, tuple) else (made,)), first]
    if name in ("cumprod", "logcumsumexp"):
        results += library.autograd.grad((first * weights).sum(), t)
    return [r.detach().numpy() for r in results]


@pytest.mark.parametrize("kind", ["plain", "zeros", "nan"])
@pytest.mark.parametrize("shape, dim", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_as_torch(name, shape, dim, kind):
    x = values(name, shape, kind)
    with program.tier("compiled"):
        ours = run(torchlike, name, x, dim)
    for a, b in zip(ours, run(torch, name, x, dim), strict=True):
        assert a.dtype == b.dtype
        size = max(1, np.nanmax(abs(b), initial=1))
        assert np.allclose(a, b, rtol=2e-5, atol=2e-5 * size, equal_nan=True) or (kind == "nan" and name == "logcumsumexp")
        if a.dtype == np.int64:
            assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.bool_, np.float64])
@pytest.mark.parametrize("name", NAMES[:4])
def test_other_types(name, kind):
    x = (RNG.integers(0, 2, 1000) if kind is np.bool_ else RNG.integers(1, 4, 1000)).astype(kind)
    x = np.minimum(x, 1).astype(kind) if name == "cumprod" else x
    with program.tier("compiled"):
        ours = getattr(torchlike, name)(torchlike.tensor(x), 0)
        ours = [t.numpy() for t in (ours if isinstance(ours, tuple) else (ours,))]
    theirs = getattr(torch, name)(torch.tensor(x), 0)
    for a, b in zip(ours, theirs if isinstance(theirs, tuple) else (theirs,)):
        assert a.dtype == b.numpy().dtype and np.array_equal(a, b.numpy())


@pytest.mark.parametrize("name", NAMES)
def test_elsewhere(name):
    """Under vmap, and under a user's own jit, where JAX has no doubles."""
    x = values(name, (2, 900), "plain")
    f = getattr(torchlike, name)
    first = lambda t: t[0] if isinstance(t, tuple) else t  # noqa: E731
    expected = first(getattr(torch, name)(torch.tensor(x), 1)).numpy()
    mapped = torchlike.vmap(lambda t: first(f(t, 0)))(torchlike.tensor(x)).numpy()
    jitted = jax.jit(lambda t: first(f(t, 1)))(torchlike.tensor(x)).numpy()
    assert np.allclose(mapped, expected, rtol=1e-5, atol=1e-4) and np.allclose(jitted, expected, rtol=1e-3, atol=1e-3)


def test_other_platforms_have_their_own():
    from torchlike.ops import scans
    with jax.enable_x64(True):
        for name in NAMES:
            f = (lambda x: scans._running(jax.numpy, x, 0, name)) if name in ("cummax", "cummin") else (lambda x: scans.running(jax.numpy, x, 0, name))  # noqa: B023
            text = jax.jit(f).trace(jax.ShapeDtypeStruct((2000,), np.float32)).lower(lowering_platforms=("cuda",)).as_text()
            assert "stablehlo.while" not in text


@pytest.mark.parametrize(("shape", "dim"), [((256,), 0), ((4099,), 0), ((70000,), 0), ((3, 700), 1), ((300, 5), 0), ((2, 257, 3), 1), ((40, 999), -1)])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_integers_are_summed_in_blocks(dtype, shape, dim):
    """Past their largest number they go on from the smallest, as in torch; no loop goes over the elements."""
    x = RNG.integers(-2 ** 62, 2 ** 62, shape).astype(dtype) if dtype != "bool" else RNG.random(shape) < 0.5
    with program.tier("compiled"):
        made = torchlike.from_numpy(x).cumsum(dim)
        got = made.numpy()
        info = history.entries[-1].info
    want = torch.from_numpy(x).cumsum(dim)
    assert np.array_equal(got, want.numpy()) and str(made.dtype) == str(want.dtype)
    assert program.is_immediate() or " while(" not in info.executables[-1].call.as_text()


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_integers_are_summed_from_the_end(dtype):
    x = RNG.integers(-2 ** 30, 2 ** 30, (3, 1000)).astype(dtype)
    for dim in (0, 1):
        with jax.enable_x64(True):
            made = jax.jit(lambda x, dim=dim: scans.reverse_cumsum(jax.numpy, x, dim))(x)
        assert made.dtype == dtype and np.array_equal(made, np.flip(np.cumsum(np.flip(x, dim), dim, dtype=dtype), dim))
