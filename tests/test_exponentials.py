"""expm1, log1p, sinh, cosh and atanh of float32 arrays in the NumPy tier: within a unit in the last place of doubles', and PyTorch's at the ends;
sums and replacements that look for NaN first."""
import numpy as np
import pytest
import torch

import torchlike as tl
import torchlike.nn.functional as TF
from torchlike._core import executor, history
from torchlike.ops import exponentials

RNG = np.random.default_rng(0)
ENDS = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 88.72, 88.73, 89.4, 89.5, -89.5, -104, 1e-45, -1e-45, 1e-38, 3e38, -3e38, 2.0 ** -20, -2.0 ** -20], np.float32)
WIDE = (RNG.standard_normal(40_000) * np.exp2(RNG.integers(-60, 8, 40_000))).astype(np.float32)


@pytest.mark.parametrize("name", ["expm1", "log1p", "sinh", "cosh", "arctanh"])
@pytest.mark.parametrize("n", [3, 50_001])
def test_accuracy(name, n):
    x = np.resize(np.concatenate([WIDE, ENDS]), n).reshape(-1, 3)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.float64)).astype(np.float32)
        made = getattr(exponentials, name)(np, x)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(want))
    np.testing.assert_array_max_ulp(made[~np.isnan(want)], want[~np.isnan(want)], 1)
    np.testing.assert_array_equal(np.signbit(made)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


@pytest.mark.parametrize("name", ["expm1", "log1p", "sinh", "cosh", "atanh"])
def test_as_pytorch(name):
    x = np.tile(ENDS if name[-1] != "h" else ENDS[~((np.abs(ENDS) > 88) & (np.abs(ENDS) < 90))], 100)  # PyTorch's sinh overflows with exp
    with executor.tier("numpy"):
        made = getattr(tl, name)(tl.from_numpy(x)).numpy()
    np.testing.assert_allclose(made, getattr(torch, name)(torch.from_numpy(x)).numpy(), rtol=3e-7, atol=2e-45)  # PyTorch takes the smallest for nothing


@pytest.mark.parametrize("name", ["softplus", "logsigmoid", "elu", "selu", "celu", "mish"])
def test_activations(name):
    x = WIDE.reshape(100, -1)
    given, want = tl.from_numpy(x).requires_grad_(), torch.from_numpy(x).requires_grad_()
    with executor.tier("numpy"):
        made = getattr(TF, name)(given)
        made.sum().backward()
        made, grad = made.detach().numpy(), given.grad.numpy()
    expected = getattr(torch.nn.functional, name)(want)
    expected.sum().backward()
    np.testing.assert_allclose(made, expected.detach().numpy(), rtol=2e-6, atol=2e-7)
    np.testing.assert_allclose(grad, want.grad.numpy(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["softplus", "expm1_below"])
@pytest.mark.parametrize("n", [3, 150_000])
def test_a_few_units(name, n):
    x = np.resize(np.concatenate([WIDE, ENDS, RNG.uniform(-20, 20, 20_000).astype(np.float32)]), n).reshape(-1, 3)
    if name == "expm1_below":
        x = -abs(x)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        want = (np.logaddexp(wide, 0) if name == "softplus" else np.expm1(wide)).astype(np.float32)
        made = getattr(exponentials, name)(np, x)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(want))
    np.testing.assert_array_max_ulp(made[np.abs(want) > 1e-37], want[np.abs(want) > 1e-37], 5)
    np.testing.assert_array_equal(np.signbit(made)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


def test_logaddexp_sign_and_prelu():
    """Infinities and NaN among many, of either sign."""
    ends = ENDS[np.abs(ENDS) != 1e-45]
    a, b = (np.resize(v, (300, 400)).astype(np.float32) for v in np.meshgrid(ends, ends))

    def program(t):
        x, y = t.from_numpy(a.copy()), t.from_numpy(b.copy())
        more = t.linspace(-9, 9, 120_000).reshape(300, 400)
        finite = x.abs() < 1e4
        return [r.numpy() for r in (t.logaddexp(x, y), t.logaddexp(more, 3 - more), t.sign(x), t.prelu(x, t.tensor([0.25])), t.prelu(x, t.tensor([-0.5])),
                                    t.nansum(t.where(finite | x.isnan(), x, 0 * y), 1),
                                    t.nn.functional.huber_loss(more, more.flip(0), reduction="none"))]
    with executor.tier("numpy"):
        made = program(tl)
    for ours, theirs in zip(made, program(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
def test_bounds_of_large_arrays(dtype):
    """Bounds that are NaN or lie beyond the type, and -0.0, which no bound of 0 changes."""
    def program(t):
        x = t.arange(-20_000, 20_000).to(getattr(t, dtype))
        made = [x.clamp(-3, 5), x.clamp(min=4), x.clamp(max=-1), x.clamp(7, 2)]
        if x.is_floating_point():
            zeros = -t.zeros(20_000, dtype=x.dtype)
            made += [x.clamp(min=float("nan")), x.clamp(-0.5, float("inf")), zeros.clamp(0, 1), zeros.relu(), t.nn.functional.relu6(x), t.nn.functional.hardtanh(zeros, 0, 1)]
        return [r.numpy() for r in made]
    with executor.tier("numpy"):
        made = program(tl)
    for a, b in zip(made, program(torch), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize("holes", ["none", "nan", "inf", "both", "opposite"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_nan(holes, dtype):
    x = RNG.integers(-9, 9, (60, 90)).astype(np.float32)
    if holes in ("nan", "both"):
        x[::7, ::3] = np.nan
    if holes in ("inf", "both", "opposite"):
        x[3, 5] = np.inf
    if holes == "opposite":
        x[3, 6] = -np.inf
    results = []
    for t in (torch, tl):
        with executor.tier("numpy"):
            a = t.tensor(x.tolist(), dtype=getattr(t, dtype)).requires_grad_()
            (a.nansum() + a.nansum(1).sum() + a.nan_to_num(2.0, 3.0, 4.0).sum()).backward()
            made = (a.nansum(), a.nansum(0), a.nansum(1, True), a.nanmean(1), a.nan_to_num(0.5, 9.0, -9.0), a.nan_to_num(float('inf'), 9.0, float('nan')), a.nan_to_num(), a.grad)
            results.append([np.array(r.float().tolist()) for r in made])
    for want, made in zip(*results):
        np.testing.assert_allclose(made, want, rtol=1e-6)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
def test_row_by_row(name, dtype):
    x = RNG.integers(1, 3, (40, 3, 300))
    results = []
    for t in (torch, tl):
        with executor.tier("numpy"):
            a = t.tensor(x.tolist(), dtype=getattr(t, dtype))
            r = getattr(a, name)(0)
            results.append([np.array(part.tolist()) for part in (r if name[3:] in ("max", "min") else (r, a))])
    for want, made in zip(*results):
        np.testing.assert_array_equal(made, want)


@pytest.mark.parametrize("low, high", [(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (-0.0, 2.0), (None, 1.5), (-0.5, None), (2.0, -2.0), (float("nan"), 1.0), (-float("inf"), 0.5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_bounds_to_the_bit(low, high, dtype):
    """To the bit: zeros keep their signs and NaN stays."""
    x = np.resize(np.concatenate([ENDS, WIDE]), 40_000).astype(dtype)
    with executor.tier("numpy"):
        made = tl.clamp(tl.from_numpy(x), low, high).numpy()
    want = torch.clamp(torch.from_numpy(x), low, high).numpy()
    np.testing.assert_array_equal(made, want)
    np.testing.assert_array_equal(np.signbit(made)[want == want], np.signbit(want)[want == want])


def test_logistic_and_its_gradients_at_the_ends():
    """Where JAX's derivative of a quotient overflows."""
    found = {}
    for lib in (torch, tl):
        with executor.tier("compiled"):
            x = lib.from_numpy(np.tile(ENDS, 100)).requires_grad_()
            y = lib.nn.functional.silu(x) if lib is torch else TF.silu(x)
            slope, = lib.autograd.grad(y.sum(), x, create_graph=True)
            second, = lib.autograd.grad(slope.sum(), x)
            found[lib] = [lib.sigmoid(x.detach()).numpy(), y.detach().numpy(), slope.detach().numpy(), second.numpy()]
    for made, want in zip(found[tl], found[torch]):
        np.testing.assert_allclose(made, want, rtol=1e-6, atol=1e-38)


@pytest.mark.usefixtures("recorded")
def test_logistic_takes_one_exponential_and_one_quotient():
    with executor.tier("compiled"):
        tl.sigmoid(tl.from_numpy(np.tile(ENDS, 70))).numpy()
    text = history.entries[-1].info.executables[-1].call.as_text()
    assert text.count(" exponential(") == 1 == text.count(" divide(")
