"""Compiled products and sums of integers, by lanes: torch's numbers over every kind of dimensions."""

import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program

RNG = np.random.default_rng(0)
CASES = [((1 << 16,), (0,)), ((1 << 16,), None), ((96, 1024), (1,)), ((96, 1024), (0,)), ((96, 1024), (0, 1)), ((7, 48, 96), (1, 2)), ((7, 48, 96), (0, 2)),
         ((64, 1, 640, 1), (1, 2)), ((64, 1, 640, 1), (2,)), ((5, 1001), (1,)), ((0, 1 << 13), (1,)), ((3, 5), (1,))]


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("shape", "dims"), CASES)
def test_sums_of_integers(shape, dims, keepdim):
    given = [RNG.integers(0, 2 if dtype is bool else 200, shape).astype(dtype) for dtype in (np.int64, np.int32, np.uint8, bool)]

    def sums(module):
        made = [module.from_numpy(x).sum(dims, keepdim) if dims else module.from_numpy(x).sum() for x in given]
        return [y.numpy() for y in made]  # of one program
    with program.tier("compiled"):
        ours = sums(torchlike)
    for mine, real in zip(ours, sums(torch), strict=True):
        assert mine.dtype == real.dtype and np.array_equal(mine, real)


@pytest.mark.parametrize("shape", [(96, 1024), (1 << 16,), (5, 1001), (64, 1, 640, 1)])
def test_products(shape):
    given = [RNG.integers(1, 1 << 40, shape) if dtype is np.int64 else (1 + 0.01 * RNG.standard_normal(shape)).astype(dtype)
             for dtype in (np.float32, np.float64, np.int64)]

    def products(module):
        made = []
        for x in given:
            for dim in (None, 0, -1):
                t = module.from_numpy(x.copy()).requires_grad_(x.dtype != np.int64)
                y = t.prod() if dim is None else t.prod(dim)
                made.append(y.detach())
                if t.requires_grad:
                    y.sum().backward()
                    made.append(t.grad)
        return [y.numpy() for y in made]
    with program.tier("compiled"):
        ours = products(torchlike)
    for a, b in zip(ours, products(torch), strict=True):
        assert a.dtype == b.dtype and (np.array_equal(a, b) if b.dtype == np.int64 else np.allclose(a, b, rtol=2e-3))
