"""Compiled writes through views with steps: a choice, where many elements are written, and torch's numbers and gradients."""

import jax
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program
from torchlike.ops.slicing import set_slice

PARTS = [(slice(None), slice(1, None, 2)), (slice(2, 9, 3),), (slice(1, 8, 2), slice(3, 40, 7)), (slice(0, 20, 2), slice(5, 6)), (slice(0, 1), slice(0, 50, 49)),
         (slice(0, 20, 19), slice(None)), (slice(4, 5), slice(None, None, 3))]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_writes(part, dtype):
    base, found = np.random.default_rng(0).standard_normal((20, 50)) > 0.3, []
    for module in (torch, torchlike):
        with program.tier("compiled"):
            x = module.from_numpy(base * 3).to(getattr(module, dtype))
            y = x + 0 if dtype != "bool" else x.logical_not()
            y[part] = y[part].logical_not() if dtype == "bool" else y[part] * 2 + 1
            found.append(y.float().numpy())
    assert np.array_equal(*found)


@pytest.mark.parametrize("part", PARTS)
def test_gradients(part):
    base, found = np.random.default_rng(0).standard_normal((20, 50)), []
    for module in (torch, torchlike):
        with program.tier("compiled"):
            x = module.from_numpy(base.copy()).requires_grad_()
            y = x * 1
            y[part].mul_(x[part] ** 2)
            y.square().sum().backward()
            found.append(x.grad.numpy())
    assert np.allclose(*found)


def test_no_scatter():
    text = str(jax.make_jaxpr(lambda base, new: set_slice(jax.numpy, base, new, [0, 1], [1, 2]))(np.zeros((8, 8)), np.zeros((8, 4))))
    assert "scatter" not in text


@pytest.mark.parametrize("text", ["t[0:2] = t", "t[...] = t", "t[:, :] = t", "t[:] = t", "t[0:1] = t[1:2]", "t[0:2] = 1.0", "t[0] = t[1]", "t[0:1] = t", "t.copy_(t)"])
def test_expanded_tensors_written_with_themselves(text):
    """What is all of a tensor is the tensor itself to torch, and is not written."""
    def outcome(library):
        t = library.arange(3.0).expand(2, 3)
        try:
            exec(text, {"t": t})
        except RuntimeError as e:
            return str(e)
        return t.tolist()
    assert outcome(torchlike) == outcome(torch)
