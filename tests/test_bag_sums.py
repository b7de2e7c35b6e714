"""embedding_bag as one operation: sums and means of bags of any lengths, beside real torch in both tiers."""

import jax
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program
from torchlike._core.registry import OPS

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((50, 16)).astype(np.float32)
BAGS = [(20, [0, 4, 4, 10, 20]), (20, [0, 5, 10, 15]), (3000, [0, 0, 7, 2900]), (0, [0, 0]), (6, [0, 6]),
        ((7, 5), None), ((300, 10), None), ((70, 21), None), ((40, 8), None), (1200, [*range(0, 1200, 24)])]


def _run(module, index, starts, scale, mode, **options):
    weight = module.from_numpy(TABLE.copy()).requires_grad_()
    scale = None if scale is None else module.from_numpy(scale.copy()).requires_grad_()
    starts = None if starts is None else module.tensor(starts)
    out = module.nn.functional.embedding_bag(module.from_numpy(index), weight, starts, mode=mode, per_sample_weights=scale, **options)
    out.square().sum().backward()
    return [x.detach().numpy() for x in (out, weight.grad, *([] if scale is None else [scale.grad]))]


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize(("shape", "starts"), BAGS)
def test_bags(shape, starts, tier):
    index = RNG.integers(0, 50, shape)
    for mode in ("sum", "mean"):
        for scaled in (False, True) if mode == "sum" else (False,):
            scale = RNG.standard_normal(shape).astype(np.float32) if scaled else None
            with program.tier(tier):
                ours = _run(torchlike, index, starts, scale, mode)
            for a, b in zip(ours, _run(torch, index, starts, scale, mode), strict=True):
                assert a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-4)


def test_on_the_cpu_a_row_of_every_bag_at_a_time():
    """XLA would fuse the look-up into a sum over rows, and take one element after the other."""
    index, weight = torchlike.from_numpy(RNG.integers(0, 50, (100, 12))), torchlike.from_numpy(TABLE)
    plan = OPS["embedding_bag"].plan((weight._value.aval, index._value.aval, None, None), (12, True))
    with jax.enable_x64(True):
        text = jax.jit(lambda w, i: plan.compiled(w, i, None, None)).lower(weight.numpy(), index.numpy()).as_text()
    assert "while" in text and "reduce" not in text


def test_last_offset():
    index = RNG.integers(0, 50, 20)
    for a, b in zip(*(_run(m, index, [0, 4, 9, 20], None, "sum", include_last_offset=True) for m in (torchlike, torch)), strict=True):
        assert np.allclose(a, b, rtol=1e-4, atol=1e-4)


def test_one_operation():
    index, weight = torchlike.from_numpy(RNG.integers(0, 50, 20)), torchlike.from_numpy(TABLE).requires_grad_()
    out = torchlike.nn.functional.embedding_bag(index, weight, torchlike.tensor([0, 4, 4, 10]), mode="mean")
    assert out.grad_fn.name() == "EmbeddingBagBackward0" and out.grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"


def test_second_derivative():
    index = RNG.integers(0, 50, (7, 5))
    found = []
    for module in (torchlike, torch):
        weight = module.from_numpy(TABLE.copy()).requires_grad_()
        index_ = module.from_numpy(index)  # torch's own embedding_bag has no second derivative
        out = weight[index_].sum(1) if module is torch else module.nn.functional.embedding_bag(index_, weight, mode="sum")
        g, = module.autograd.grad((out ** 3).sum(), weight, create_graph=True)
        g.square().sum().backward()
        found.append(weight.grad.numpy())
    assert np.allclose(*found, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("starts", [None, [0, 2, 2, 5]])
def test_gradients_scaled_by_frequency(mode, padding, starts):
    """Each row's gradient over how often it was looked up. (PyTorch's kernel divides it by another row's count.)"""
    index = np.array([0, 1, 2, 0, 1, 1, 4, 0])
    counts = np.bincount(index, minlength=5)
    if starts is None:
        index = index.reshape(4, 2)

    def gradient(module, scaled):
        weight = module.arange(10.0).reshape(5, 2).requires_grad_()
        bags = module.nn.functional.embedding_bag(module.from_numpy(index), weight, None if starts is None else module.tensor(starts), mode=mode,
                                                  padding_idx=padding, scale_grad_by_freq=scaled)
        (bags * module.arange(1.0, 5.0)[:, None]).sum().backward()
        return np.asarray(weight.grad.tolist())
    np.testing.assert_allclose(gradient(torchlike, True), gradient(torch, False) / np.maximum(counts, 1)[:, None], rtol=1e-6)
