"""Powers of large arrays with negative bases, in both tiers: PyTorch's values, and its gradients."""
import numpy as np
import pytest
import torch

import torchlike as tl
from torchlike._core import executor
from torchlike.ops import powers

RNG = np.random.default_rng(0)
ENDS = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 2, -2, 3, -3, 2.5, -2.5, 1e30, -1e30, 16777216, 16777217])
BASES, EXPONENTS = (np.concatenate([a.reshape(-1), RNG.standard_normal(powers.MANY), RNG.integers(-9, 9, powers.MANY)])
                    for a in np.meshgrid(ENDS, ENDS))


def check(f, *arrays):
    given, want = ([m.from_numpy(a.copy()).requires_grad_() for a in arrays] for m in (tl, torch))
    made, expected = f(*given), f(*want)
    made.backward(tl.ones_like(made))
    expected.backward(torch.ones_like(expected))
    rtol = 1e-6 if arrays[0].dtype == np.float32 else 1e-13
    np.testing.assert_allclose(made.detach().numpy(), expected.detach().numpy(), rtol=rtol, atol=1e-44)
    zeros = expected.detach().numpy() == 0
    np.testing.assert_array_equal(np.signbit(made.detach().numpy())[zeros], np.signbit(expected.detach().numpy())[zeros])
    for a, b in zip(given, want):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=4 * rtol, atol=1e-38)


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
class TestPowers:
    def test_by_tensors(self, tier, dtype):
        with executor.tier(tier), np.errstate(all="ignore"):
            check(lambda x, y: x ** y, BASES.astype(dtype), EXPONENTS.astype(dtype))

    @pytest.mark.parametrize("exponent", [3.5, 1.5, 5, 6, -3, -3.5, 7.0, float("inf"), float("nan")])
    def test_by_numbers(self, tier, dtype, exponent):
        with executor.tier(tier), np.errstate(all="ignore"):
            check(lambda x: x ** exponent, BASES.astype(dtype))

    def test_broadcast(self, tier, dtype):
        x, y = RNG.standard_normal((80, 70)), RNG.integers(-3, 4, (80, 1))
        with executor.tier(tier):
            check(lambda x, y: x ** y, x.astype(dtype), y.astype(dtype))


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, 2.5])
def test_second_derivative(exponent):
    x = np.append(np.abs(RNG.standard_normal(powers.MANY)), 0)
    second = []
    for m in (tl, torch):
        t, y = m.from_numpy(x).requires_grad_(), m.full((len(x),), exponent, dtype=m.float64)
        slope, = m.autograd.grad((t ** y).sum(), t, create_graph=True)
        second.append(m.autograd.grad(slope.sum(), t)[0].numpy())
    np.testing.assert_allclose(*second, rtol=1e-10)
