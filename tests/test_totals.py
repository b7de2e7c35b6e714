"""Sums and products of large arrays in NumPy: as exact as NumPy's own, over every kind of dimensions."""

import numpy as np
import pytest

from torchlike.ops.totals import product, total

RNG = np.random.default_rng(0)
CASES = [((100003,), (0,)), ((1 << 20,), (0,)), ((300, 1000), (1,)), ((300, 1000), (0, 1)), ((40, 30, 64), (1, 2)), ((40, 30, 64), (0, 2)),
         ((4, 5003), (1,)), ((2, 3, 1 << 13), (2,)), ((20000, 3), (1,)), ((300, 1000), ()), ((1, 9001), (-1,)),
         ((300, 1, 100, 1), (1, 2)), ((30, 1, 20, 1, 40), (2, 4)), ((30, 1, 400), (0, 2)), ((200, 1, 500), (1,))]  # fmt: skip


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dims"), CASES)
def test_totals(shape, dims, dtype, keepdims):
    x = RNG.random(shape).astype(dtype)
    exact = np.add.reduce(x.astype(np.longdouble), dims, keepdims=keepdims)
    ours, numpys = total(x, dims, keepdims), np.add.reduce(x, dims, keepdims=keepdims)
    assert ours.shape == numpys.shape and ours.dtype == dtype
    assert np.abs(ours - exact).max() <= 2 * np.abs(numpys - exact).max() + 4 * np.finfo(dtype).eps * np.abs(exact).max()
    x = (1 + 0.01 * RNG.standard_normal(shape)).astype(dtype)
    ours, numpys = product(x, dims, keepdims), np.multiply.reduce(x.astype(np.longdouble), dims, keepdims=keepdims)
    assert ours.shape == numpys.shape and ours.dtype == dtype
    assert np.allclose(ours, numpys.astype(dtype), rtol=100 * np.sqrt(x.size) * np.finfo(dtype).eps)


def test_what_is_not_finite():
    x = RNG.random((20, 1000), dtype=np.float32)
    x[3, 5], x[4, 6], x[5, 7], x[5, 8] = np.inf, np.nan, np.inf, -np.inf
    assert np.array_equal(np.isnan(total(x, (1,), False)), np.isnan(np.add.reduce(x, 1)))
    assert total(x, (1,), False)[3] == np.inf and product(x, (1,), False)[3] == np.multiply.reduce(x[3])
