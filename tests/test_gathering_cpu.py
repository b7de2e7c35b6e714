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


@pytest.mark.parametrize("shape, unfold", [
    ((3, 40), (1, 6, 4)), ((3, 40), (1, 5, 1)), ((2, 9, 3, 4), (1, 3, 2)), ((7,), (0, 7, 1)), ((2, 8, 2), (-2, 3, 3)), ((0, 8), (1, 3, 3)), ((4, 5), (1, 0, 2))])
@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "bool"])
def test_windows(shape, unfold, kind):
    data = np.arange(np.prod(shape)).reshape(shape) % 11

    def values(t):
        x = t.tensor(data).to(getattr(t, kind))
        x.requires_grad_(x.is_floating_point())
        y = x.unfold(*unfold) * 1
        found = [y.detach()]
        if x.requires_grad:
            found += t.autograd.grad(y, x, (t.arange(y.numel()).view(y.shape) % 7).to(x.dtype))
        return [a.numpy() for a in found]
    with program.tier("compiled"):
        got = values(torchlike)
    for a, b in zip(got, values(torch)):
        np.testing.assert_array_equal(a, b)


def test_nothing_is_put_in_order():
    """XLA would gather columns one by one, and transpose them."""
    x, i = torchlike.zeros(64, 32), torchlike.zeros(8, dtype=torchlike.int64)
    for name, inputs, statics in (("index", (x, i), ((1,),)), ("unfold", (x,), (1, 8, 4))):
        plan = OPS[name].plan(tuple(t._value.aval for t in inputs), statics)
        with jax.enable_x64(True):
            text = jax.jit(lambda x, *more: (plan.compiled(x, *more), x + 1)).lower(*(t.numpy() for t in inputs)).compile().as_text()  # noqa: B023  (at once)
        assert "gather" in text and "copy(" not in text
