"""digamma's derivative: PyTorch's values in both tiers, of few and of many elements."""
import numpy as np
import pytest
import torch

import torchlike as tl
from torchlike._core import executor

RNG = np.random.default_rng(0)
POINTS = np.concatenate([RNG.uniform(0.01, 5, 50), RNG.uniform(-0.9, -0.1, 20), [0.0, -0.0, 1e-15, 1e30, np.inf, -np.inf, np.nan, 0.5, 1, 20, 1e5]])


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype, rtol", [(np.float32, 3e-6), (np.float64, 1e-8), (np.float16, 2e-3)])
@pytest.mark.parametrize("n", [50, len(POINTS), 150_000])
def test_trigamma(tier, dtype, rtol, n):
    x = np.resize(POINTS, n).astype(dtype)
    with executor.tier(tier):
        found = []
        for m in (tl, torch):
            t = m.from_numpy(x).requires_grad_()
            m.digamma(t).backward(m.ones_like(t))
            found.append((m.polygamma(1, t).detach().numpy(), t.grad.numpy()))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=rtol)
