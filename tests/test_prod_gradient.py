"""The gradient of a product, without zeros, with one and with several; in both tiers, and its own gradient."""
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "float16"])
@pytest.mark.parametrize("zeros", [0, 1, 2, 40])
@pytest.mark.parametrize("shape, dim", [((6, 40), None), ((6, 40), 1), ((6, 40), 0), ((3, 5, 200), 2), ((), None), ((0, 3), 0), ((2, 0), 1)])
@pytest.mark.parametrize("tier", ["numpy", "compiled"])
def test_as_torch(tier, shape, dim, zeros, kind):
    x = 1 + 0.1 * RNG.standard_normal(shape)
    x = (x + 0.1j * RNG.standard_normal(shape) if kind == "complex64" else x).astype(kind)
    if zeros and x.size:
        x = np.array(x)
        x.reshape(-1)[:zeros] = 0

    def run(library):
        t = library.tensor(x, requires_grad=True)
        out = t.prod() if dim is None else t.prod(dim)
        (first,) = library.autograd.grad((out * out).sum().abs(), t, create_graph=True)
        found = [out, first]
        if kind != "float16" and first.requires_grad:
            found += library.autograd.grad((first * first.detach().conj()).sum().abs(), t)
        return [f.detach().numpy() for f in found]
    with program.tier(tier):
        ours = run(torchlike)
    theirs = run(torch)
    size = max(1.0, *(float(abs(a).max(initial=0)) for a in theirs))
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, rtol=2e-2 if kind == "float16" else 2e-4, atol=(1e-2 if kind == "float16" else 1e-5) * size)
