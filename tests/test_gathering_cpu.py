"""Elements by index arrays of inner dimensions, in compiled programs for the CPU: beside real torch, and in the order of the result."""
import jax
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program
from torchlike._core.registry import OPS

READS = [
    lambda x, i, j: x[:, i], lambda x, i, j: x[:, i, j], lambda x, i, j: x[:, :, i], lambda x, i, j: x[:, :, i - 1, :], lambda x, i, j: x[:, i[:, None], j[None]],
    lambda x, i, j: x[..., i[:2].view(2, 1)], lambda x, i, j: x[:, i, :, j], lambda x, i, j: x[i % 3, j], lambda x, i, j: x[:, i[:0]], lambda x, i, j: x[:0][:, i],
    lambda x, i, j: x[:, -1 * i - 1], lambda x, i, j: x.index_select(2, i), lambda x, i, j: x[:, i[0]], lambda x, i, j: x[:, [0, 2]], lambda x, i, j: x[:, :, i, j]]


@pytest.mark.parametrize("read", range(len(READS)))
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "complex64", "int64", "bool"])
def test_as_in_torch(read, kind):
    rng = np.random.default_rng(read)
    data, first, second = rng.standard_normal((3, 4, 5, 4)) * 3, rng.integers(0, 4, 6), rng.integers(0, 4, 6)
    data[0, 0, 0] = np.nan if kind in ("float32", "float64", "bfloat16") else 1

    def values(t):
        x = t.tensor(data).to(getattr(t, kind))
        x.requires_grad_(x.is_floating_point() or x.is_complex())
        y = READS[read](x, t.tensor(first), t.tensor(second))
        found = [y.detach()]
        if x.requires_grad:
            found += t.autograd.grad(y, x, (t.arange(y.numel()).view(y.shape) % 7).to(x.dtype))
        return [a.to(t.complex128).numpy() for a in found]
    with program.tier("compiled"):
        got = values(torchlike)
    for a, b in zip(got, values(torch)):
        np.testing.assert_allclose(a, b, rtol=1e-2 if kind == "bfloat16" else 1e-6)


def test_nothing_is_put_in_order():
    """XLA would gather columns one by one, and transpose them."""
    x, i = torchlike.zeros(64, 32), torchlike.zeros(8, dtype=torchlike.int64)
    plan = OPS["index"].plan((x._value.aval, i._value.aval), ((1,),))
    with jax.enable_x64(True):
        text = jax.jit(lambda x, i: (plan.compiled(x, i), x + 1)).lower(x.numpy(), i.numpy()).compile().as_text()
    assert "gather" in text and "copy(" not in text
