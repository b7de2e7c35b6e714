"""Resampling against real torch: bytes bit for bit, floats to rounding, in both tiers."""

import jax
import numpy as np
import pytest
import torch as oracle

import torchlike as torch
from torchlike._core import program
from torchlike._core.registry import OPS
from torchlike.nn._functional import grid as grid_file

SIZES = [(40, 52, 20, 30), (31, 33, 45, 16), (60, 50, 7, 50)]


def both(x, size, **settings):
    """What torch makes of it, and what the two tiers do."""
    expected = oracle.nn.functional.interpolate(x, size, align_corners=False, **settings)
    ours = torch.from_numpy(x.numpy().copy())
    for tier in ("numpy", "compiled"):
        with program.tier(tier):
            yield expected, oracle.from_numpy(torch.nn.functional.interpolate(ours, size, align_corners=False, **settings).numpy().copy())


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_bytes(mode, antialias):
    generator = oracle.Generator().manual_seed(0)
    for height, width, *size in SIZES:
        x = oracle.randint(0, 256, (1, 3, height, width), generator=generator, dtype=oracle.uint8)
        for expected, got in both(x, size, mode=mode, antialias=antialias):
            assert oracle.equal(got, expected)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("kind, rounding", [(oracle.float32, 8e-7), (oracle.float64, 1e-14)])
def test_floats(mode, antialias, kind, rounding):
    """Positions and weights are rounded where torch rounds them: computed otherwise, they are off by ten times as much."""
    generator = oracle.Generator().manual_seed(0)
    for height, width, *size in SIZES:
        x = oracle.rand(1, 3, height, width, generator=generator, dtype=kind)
        for expected, got in both(x, size, mode=mode, antialias=antialias):
            assert (got - expected).abs().max() <= rounding


def test_grid_sample_positions():
    generator = oracle.Generator().manual_seed(0)
    x, grid = oracle.rand(2, 3, 33, 47, generator=generator), oracle.rand(2, 20, 21, 2, generator=generator) * 2.4 - 1.2
    expected = oracle.nn.functional.grid_sample(x, grid, align_corners=False)
    with program.tier("numpy"):
        got = torch.nn.functional.grid_sample(torch.from_numpy(x.numpy()), torch.from_numpy(grid.numpy()), align_corners=False)
        assert (oracle.from_numpy(got.numpy()) - expected).abs().max() <= 2e-7


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("shape, places", [((2, 3, 5, 6), (4, 7)), ((2, 2, 3, 4, 5), (2, 3, 4)), ((1, 2, 4, 4), (0, 2))])
def test_grid_sample_compiled(mode, padding, shape, places):
    if mode == "bicubic" and len(shape) == 5:
        return
    generator = oracle.Generator().manual_seed(0)
    for kind, align in ((oracle.float32, False),) if padding == "border" else ((oracle.float64, True),):
        x = oracle.randn(shape, generator=generator, dtype=kind)
        grid = oracle.rand(shape[0], *places, len(places), generator=generator, dtype=kind) * 2.8 - 1.4

        def values(t, x=x, grid=grid, align=align):
            given = [t.tensor(a.numpy(), requires_grad=True) for a in (x, grid)]
            out = t.nn.functional.grid_sample(*given, mode, padding, align)
            return [a.detach().numpy() for a in (out, *t.autograd.grad(out, given, t.ones_like(out) * 2))]
        with program.tier("compiled"):
            got = values(torch)
        for a, b in zip(got, values(oracle)):
            np.testing.assert_allclose(a, b, **({"rtol": 1e-4, "atol": 1e-4} if kind is oracle.float32 else {"rtol": 1e-9, "atol": 1e-9}))


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_at_no_number(mode):
    given = [[[[float("nan"), 0.0], [0.1, 0.2], [float("inf"), float("-inf")]]]]
    expected = oracle.nn.functional.grid_sample(oracle.ones(1, 1, 4, 4), oracle.tensor(given), mode, align_corners=False)
    for tier in ("numpy", "compiled"):
        with program.tier(tier):
            got = torch.nn.functional.grid_sample(torch.ones(1, 1, 4, 4), torch.tensor(given), mode, align_corners=False)
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6)


def test_grid_sample_on_the_cpu_finds_its_places_once():
    """They are results of a branch, which XLA does not fuse with what reads them."""
    avals = [torch.zeros(s)._value.aval for s in ((2, 8, 6, 6), (2, 5, 5, 2))]
    plan = OPS["grid_sampler_2d"].plan(tuple(avals), ("bilinear", "zeros", False))
    with jax.enable_x64(True):
        text = jax.jit(plan.compiled).lower(*(jax.ShapeDtypeStruct(a.shape, a.dtype.np) for a in avals)).as_text()
    assert "stablehlo.case" in text


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("align", [False, True])
def test_maps_that_move_nothing(align, tier):
    """Spatial transformers begin with them: each position is a whole number but for its last bit, which decides between which pixels it is."""
    def run(t, n, kind):
        theta = t.tensor([[[1.0, 0, 0], [0, 1, 0]]], dtype=getattr(t, kind)).requires_grad_()
        grid = t.nn.functional.affine_grid(theta, (1, 1, n, n + 3), align_corners=align)
        if kind == "float32":
            pixels = (t.arange(n * (n + 3), dtype=theta.dtype) * 7 % 11).reshape(1, 1, n, n + 3)
            (t.nn.functional.grid_sample(pixels, grid, align_corners=align) * (pixels.flip(3) + 1)).sum().backward()
        return grid.detach().double().numpy(), None if theta.grad is None else theta.grad.numpy()

    with program.tier(tier):
        for kind in ("float32", "float64", "float16", "bfloat16"):
            for n in (7, 12, 28, 40):
                (grid, gradient), (wanted, wanted_gradient) = run(torch, n, kind), run(oracle, n, kind)
                np.testing.assert_array_equal(grid, wanted)
                if gradient is not None:
                    np.testing.assert_allclose(gradient, wanted_gradient, rtol=2e-5, atol=0.05)


def test_capability():
    assert torch.backends.cpu.get_cpu_capability() == oracle.backends.cpu.get_cpu_capability()


def test_number_over_tensor():
    """torch multiplies by the reciprocal, which rounds twice."""
    x = oracle.arange(1.0, 256.0)
    ours = torch.arange(1.0, 256.0, requires_grad=True)
    assert (255 / ours).tolist() == (255 / x).tolist() and (7 / torch.arange(1, 9)).tolist() == (7 / oracle.arange(1, 9)).tolist()
    assert type((255 / ours).grad_fn).__name__ == "MulBackward0"


def test_one_rounding():
    """add(alpha=) and linspace are rounded once, as torch's compiler has it: pixels are cut off to bytes afterwards."""
    x, y = oracle.arange(1.0, 200.0) / 7, oracle.arange(1.0, 200.0) / 3
    ours = torch.from_numpy(x.numpy().copy()), torch.from_numpy(y.numpy().copy())
    with program.tier("numpy"):
        for add in ("add", "sub"):
            assert getattr(torch, add)(*ours, alpha=0.3).tolist() == getattr(oracle, add)(x, y, alpha=0.3).tolist()
        for start, end, steps in ((256.0, 0.0, 31), (-1, 1, 100), (-20.37, 91.123, 64)):
            assert torch.linspace(start, end, steps).tolist() == oracle.linspace(start, end, steps).tolist()


def test_dirichlet():
    for alpha in ([1.0, 1.0, 1.0], [0.3, 2.0], [[0.5, 4.0], [3.0, 0.1]]):
        drawn = []
        for library in (oracle, torch):
            library.manual_seed(3)
            drawn.append([library._sample_dirichlet(library.tensor(alpha)).tolist() for _ in range(20)])
        assert drawn[0] == drawn[1]


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("shape, points", [((2, 3, 40, 50), (5, 6)), ((1, 4, 30, 20, 10), (3, 4, 5)), ((3, 2, 30, 40), (4, 4))])
def test_few_points_of_large_images(mode, padding, shape, points):
    """Pixels are picked, and infinities beside what is read do not spread."""
    if mode == "bicubic" and len(shape) == 5:
        for m in (torch, oracle):
            with pytest.raises(RuntimeError):
                m.nn.functional.grid_sample(m.ones(shape), m.ones(shape[0], *points, 3), mode, padding, align_corners=False)
        return
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32)
    grid = rng.uniform(-1.3, 1.3, (shape[0], *points, len(shape) - 2)).astype(np.float32)
    x[..., 0, 0] = np.inf if padding == "zeros" and mode != "bicubic" else 0
    made = []
    for m in (torch, oracle):
        given = m.from_numpy(x.copy()).requires_grad_()
        with program.tier("numpy"):
            out = m.nn.functional.grid_sample(given, m.from_numpy(grid), mode, padding, align_corners=False)
            out.backward(m.ones_like(out))
            made.append((out.detach().numpy(), given.grad.numpy()))
    for ours, theirs in zip(*made):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("shape, points", [((2, 3, 9, 11), (13, 10)), ((1, 1, 5, 6, 7), (4, 8, 6)), ((2, 2, 40, 50), (3, 7))])
def test_some_outputs_at_a_time(mode, shape, points, monkeypatch):
    """The NumPy tier takes places and weights of few outputs at once; a grid that a batch shares is one of channels."""
    sizes = []
    monkeypatch.setattr(grid_file, "_BLOCK", 16)
    corners = grid_file._corners
    monkeypatch.setattr(grid_file, "_corners", lambda xp, positions, *how: (sizes.append(positions.shape[1]), corners(xp, positions, *how))[1])
    rng = np.random.default_rng(0)
    x, grid = rng.standard_normal(shape).astype(np.float32), rng.uniform(-1.3, 1.3, (1, *points, len(shape) - 2)).astype(np.float32)
    for batch in (1, shape[0]):
        mine = "bilinear" if len(shape) == 5 and mode == "bicubic" else mode
        out = [m.nn.functional.grid_sample(m.from_numpy(x[:batch]), m.from_numpy(grid).expand(batch, *grid.shape[1:]), mine, align_corners=False)
               for m in (torch, oracle)]
        np.testing.assert_allclose(out[0].numpy(), out[1].numpy(), rtol=2e-4, atol=2e-5)
    assert max(sizes) == 16 and sum(sizes) == 2 * np.prod(points)


def test_what_stands_for_a_size():
    def refused(library, size):
        try:
            return tuple(library.nn.functional.interpolate(library.ones(1, 2, 4, 4), size=size).shape)
        except TypeError:
            return "TypeError"

    for make in (lambda t: t.tensor(6), lambda t: t.tensor(6.0), lambda t: t.tensor([6, 6]), lambda t: 6.0, lambda t: True, lambda t: "a", lambda t: np.int64(6)):
        for whole in (lambda s: s, lambda s: (s, s)):
            assert refused(torch, whole(make(torch))) == refused(oracle, whole(make(oracle)))
    words = "expected size to be one of int or Tuple.*got size with types"
    with pytest.raises(TypeError, match=words):
        torch.nn.functional.interpolate(torch.ones(1, 2, 4), size=(torch.tensor(6.0),))


def test_factors_that_are_tensors():
    def said(library, **given):
        given = {k: eval(v, {"torch": library}) for k, v in given.items()}
        try:
            return tuple(library.nn.functional.interpolate(library.ones(1, 1, 4, 4), **given).shape)
        except TypeError as e:
            return str(e).split("\n")[0]
    for mode in ("nearest", "bilinear", "bicubic", "nearest-exact"):
        for given in ({"scale_factor": "torch.tensor(2.0)"}, {"scale_factor": "torch.tensor(2)"}, {"scale_factor": "[torch.tensor(2.0), 2.0]"},
                      {"size": "torch.tensor(6)"}, {"size": "torch.tensor([6, 6])"}, {"scale_factor": "torch.tensor(1.5)", "recompute_scale_factor": "True"}):
            assert said(torch, mode=repr(mode), **given) == said(oracle, mode=repr(mode), **given), (mode, given)
