"""Pools and folds, compiled and in NumPy, against real torch: windows that tile, overlap, skip and are dilated."""
import numpy as np
import pytest
import torch
from nn_models import said
from same import same

import torchlike
from torchlike._core import program
from torchlike.nn._functional import pooling

CASES = [("max_pool2d", (2, 3, 8, 9), {"kernel_size": 2}), ("max_pool2d", (2, 3, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1}),
         ("max_pool2d", (2, 3, 9, 10), {"kernel_size": 3, "stride": 1, "padding": 1}), ("max_pool2d", (2, 3, 9, 10), {"kernel_size": (2, 3), "ceil_mode": True}),
         ("max_pool2d", (2, 3, 9, 10), {"kernel_size": 2, "stride": 3, "dilation": 2}), ("max_pool2d", (2, 3, 9, 10), {"kernel_size": 2, "dilation": 2}),
         ("max_pool1d", (2, 3, 9), {"kernel_size": 2}), ("max_pool3d", (2, 3, 4, 5, 6), {"kernel_size": 2}),
         ("avg_pool2d", (2, 3, 8, 9), {"kernel_size": 2}), ("avg_pool2d", (2, 3, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1}),
         ("avg_pool2d", (2, 3, 9, 10), {"kernel_size": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}),
         ("fold", (2, 12, 15), {"output_size": (6, 7), "kernel_size": (2, 3), "stride": (2, 1)}), ("unfold", (2, 3, 8, 8), {"kernel_size": 2, "stride": 2}),
         ("unfold", (2, 3, 9, 8), {"kernel_size": 3, "stride": 2, "padding": 1})]


@pytest.mark.parametrize("tier", ["compiled", "numpy"])
def test_windows(oracle, subject, tier):
    rng = np.random.default_rng(0)
    for name, shape, keywords in CASES:
        x = rng.integers(-3, 3, shape).astype(np.float32)  # with ties: the first one gets a maximum's gradient
        a = oracle.tensor(x, requires_grad=True)
        y = getattr(oracle.nn.functional, name)(a, **keywords)
        g = rng.standard_normal(tuple(y.shape), np.float32)
        with program.tier(tier):
            b = subject.tensor(x, requires_grad=True)
            z = getattr(subject.nn.functional, name)(b, **keywords)
            gradient, = subject.autograd.grad(z, b, subject.tensor(g))
            got = z.detach().numpy(), gradient.numpy()
        for have, want in zip(got, (y.detach(), oracle.autograd.grad(y, a, oracle.tensor(g))[0])):
            np.testing.assert_allclose(have, want.numpy(), rtol=1e-5, atol=1e-5, err_msg=f"{name} {shape} {keywords}")


@pytest.mark.parametrize("shape, sizes", [((7,), (3,)), ((5, 8), (3, 5)), ((4, 5, 3), (3, 2, 3)), ((2,), (5,))])
def test_adaptive_maxima_of_uneven_windows_are_looked_up_at_once(shape, sizes):
    table = pooling._window_table(shape, sizes)
    assert len(table) == np.prod(sizes)
    x = np.random.default_rng(0).integers(0, 5, (2, 3, *shape)).astype(np.float32)
    name = f"adaptive_max_pool{len(shape)}d"
    theirs = getattr(torch.nn.functional, name)(torch.tensor(x), sizes, return_indices=True)
    ours = getattr(torchlike.nn.functional, name)(torchlike.tensor(x), sizes, return_indices=True)
    for a, b in zip(ours, theirs):
        assert np.array_equal(a.numpy(), b.numpy())


@same
def test_words_about_lines_that_are_too_short(torch):
    """With indices torch sees a plane of height 1."""
    f = torch.nn.functional
    return [said(pool, torch.ones(1, 1, 4), 3, dilation=2, return_indices=i) for pool in (f.max_pool1d, f.max_pool1d_with_indices) for i in (False, True)], [
        said(f.max_pool1d, torch.ones(shape), 2, return_indices=True) for shape in ((4,), (2, 0, 4), (2, 3, 0))]


@pytest.mark.parametrize("n, kernel, stride, padding, dilation", [(2, 3, 2, 1, 1), (2, 2, 1, 1, 1), (2, 4, 3, 2, 1), (1, 3, 1, 1, 1), (2, 3, 1, 1, 2), (3, 3, 2, 1, 1),
                                                                  (2, 2, 2, 0, 1), (2, 6, 2, 3, 1)])
@same
def test_windows_of_infinities(torch, n, kernel, stride, padding, dilation):
    """The first position inside of the plane is the best one: where the gradient goes."""
    x = torch.full((1, 2, *(6,) * n), -float("inf"))
    x[0, 1, ..., 0] = 1.0
    x.requires_grad_()
    pool = getattr(torch.nn.functional, f"max_pool{n}d")
    found = []
    for indices in (True, False):
        y = pool(x, kernel, stride, padding, dilation, return_indices=indices)
        y, *where = y if indices else (y,)
        weights = torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape) + 1
        found += [y, *where, torch.autograd.grad(y, x, weights)[0]]
    return found
