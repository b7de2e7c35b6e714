"""The gradient of gamma samples in NumPy: SciPy's functions, never JAX, which would compile at each call."""
import jax
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import executor
from torchlike.ops.gamma_samples import _gamma_slope


@pytest.mark.parametrize("low, high", [(-3, -1), (-1, 1), (1, 4)])
def test_as_jax_and_torch(low, high):
    rng = np.random.default_rng(0)
    a = 10 ** rng.uniform(low, high, 300)
    x = np.maximum(rng.gamma(a), 1e-30)
    with jax.enable_x64(True):
        exact = np.asarray(jax.jit(jax.lax.random_gamma_grad)(a, x))
    ours = _gamma_slope(np, a, x)
    assert np.allclose(ours, exact, rtol=1e-5)
    assert np.allclose(ours, torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)), rtol=2e-3)


def test_nothing_is_compiled(monkeypatch):
    def compiled(*args):
        raise AssertionError("JAX was asked")
    monkeypatch.setattr(jax.lax, "random_gamma_grad", compiled)
    with executor.tier("numpy"):
        rate = torchlike.tensor([0.5, 2.0, 30.0], requires_grad=True)
        torchlike._standard_gamma(rate).sum().backward()
        assert rate.grad.isfinite().all().item()
