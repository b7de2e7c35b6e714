"""Products of integer matrices by float products: to the bit torch's, however large the numbers are, in both tiers."""

import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program
from torchlike.ops import exact_products

RNG = np.random.default_rng(0)
SHAPES = [((64, 64), (64, 64)), ((5, 40, 70), (70, 30)), ((40,), (40, 2000)), ((3, 40, 50), (3, 50, 60)), ((300, 200), (200,))]


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize(("low", "high"), [(0, 100), (-3, 1 << 40), (-(1 << 62), 1 << 62)])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.int8, np.uint8])
def test_products(dtype, low, high, tier):
    for x, y in SHAPES:
        x, y = (RNG.integers(low, high, s).astype(dtype) for s in (x, y))
        with program.tier(tier):
            ours = (torchlike.from_numpy(x) @ torchlike.from_numpy(y)).numpy()
        real = (torch.from_numpy(x) @ torch.from_numpy(y)).numpy()
        assert ours.dtype == real.dtype and np.array_equal(ours, real)


def test_the_lowest_number():
    x = np.full((64, 64), np.iinfo(np.int64).min) + np.eye(64, dtype=np.int64)
    assert np.array_equal(exact_products.product(x, x), np.matmul(x, x))


def test_blas_is_used(monkeypatch):
    x = RNG.integers(0, 100, (64, 64))
    kinds, matmul = [], np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b: kinds.append(a.dtype.kind) or matmul(a, b))
    exact_products.product(x, x)
    assert kinds == ["f"]
