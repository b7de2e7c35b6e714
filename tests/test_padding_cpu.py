"""Borders made of the input in compiled programs for the CPU: taken by their places, beside real torch."""
import jax
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import dtype as dt
from torchlike._core import program
from torchlike._core.aval import aval
from torchlike._core.device import CPU
from torchlike._core.registry import OPS

CASES = [(mode, shape, pads) for mode in ("reflect", "replicate", "circular") for shape, pads in (
    ((2, 3, 6, 5), (2, 1, 3, 0)), ((1, 2, 5, 4), (0, 0, 2, 2)), ((2, 5), (1, 3)), ((3, 4, 5), (-1, 2)), ((2, 2, 4, 5), (-2, 1, 1, -1)),
    ((1, 2, 3, 4, 5), (2, 1, 0, 2, 1, 1)), ((0, 2, 4, 5), (1, 1, 1, 1)))] + [("replicate", (1, 1, 2, 3), (7, 5, 4, 9)), ("circular", (1, 1, 4, 3), (3, 3, 4, 4))]


@pytest.mark.parametrize("mode, shape, pads", CASES)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64])
def test_as_in_torch(mode, shape, pads, kind):
    x = np.arange(np.prod(shape)).reshape(shape).astype(kind) + 1
    if x.size:
        x.flat[0] = np.nan
    if kind == np.float32 and x.size > 1:
        x.flat[1], x.flat[-1] = np.inf, -0.0

    def values(module):
        a = module.tensor(x, requires_grad=True)
        y = module.nn.functional.pad(a * 1, pads, mode)
        weights = module.arange(1, y.numel() + 1).reshape(y.shape).to(y.dtype)
        (gradient,) = module.autograd.grad(y, a, weights)
        return y.detach().numpy(), gradient.numpy()
    want = values(torch)
    with program.tier("compiled"):
        got = values(torchlike)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(a.real), np.signbit(b.real))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_no_parts_are_joined(mode):
    """XLA chooses between joined parts at each element."""
    plan = OPS[f"{mode}_pad2d"].plan((aval((2, 3, 8, 8), dt.float32, CPU),), (((0, 0), (0, 0), (2, 2), (2, 2)), mode))
    with jax.enable_x64(True):
        text = jax.jit(plan.compiled).lower(jax.ShapeDtypeStruct((2, 3, 8, 8), np.float32)).as_text()
    assert "gather" in text and "concatenate" not in text
