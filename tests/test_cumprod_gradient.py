"""The gradient of cumprod and its own gradient, without zeros and with some, in both tiers."""
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("shape, dim, kind", [((4, 5), 1, "float64"), ((5, 3), 0, "float64"), ((4,), 0, "complex128"), ((3, 4), -1, "complex128")])
@pytest.mark.parametrize("tier", ["numpy", "compiled"])
def test_as_torch(tier, shape, dim, kind, zeros):
    rng = np.random.default_rng(zeros)
    a, weights = [rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if kind == "complex128" else 0) for _ in range(2)]
    a.reshape(-1)[rng.permutation(a.size)[:zeros]] = 0

    def run(library):
        x, w = library.tensor(a, requires_grad=True), library.tensor(weights, requires_grad=True)
        (first,) = library.autograd.grad((library.cumprod(x, dim) * w).abs().pow(2).sum(), x, create_graph=True)
        second = library.autograd.grad((first * w.detach()).abs().pow(2).sum(), [x, w])
        return [t.detach().resolve_conj().numpy() for t in (first, *second)]
    with program.tier(tier):
        ours = run(torchlike)
    for mine, theirs in zip(ours, run(torch)):
        assert mine.dtype == theirs.dtype and np.allclose(mine, theirs, rtol=1e-9, atol=1e-9)
