"""Rows summed by index in NumPy: to the bit what additions one after the other give; wrong indices are refused."""

import numpy as np
import pytest

from torchlike._core.scipy_extension import worth
from torchlike.ops import rows as rows_module
from torchlike.ops.positions import combine_at, rows_add

RNG = np.random.default_rng(0)


@pytest.fixture(params=[0, 1 << 40], ids=["SciPy's product", "NumPy"])
def way(request, monkeypatch):
    monkeypatch.setattr(rows_module, "_SOME", request.param)


def test_small_work_adds_up():
    assert [worth("a test's", 5, 10) for _ in range(4)] == [False, False, True, True]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16])
@pytest.mark.parametrize(("n", "count", "width"), [(5, 3, 2), (7, 40, 64), (30, 900, 64), (900, 30, 64), (4, 0, 3), (1, 200, 1), (50, 1000, 41)])
def test_rows(n, count, width, dtype):
    index, rows = RNG.integers(0, n, count), (RNG.standard_normal((count, width)) * 9).astype(dtype)
    want = np.zeros((n, width), dtype)
    for i, row in zip(index, rows, strict=True):
        want[i] += row
    assert np.array_equal(rows_add(n, index, rows), want)
    assert np.array_equal(rows_add(n, index.astype(np.int32), rows[:, ::-1][:, ::-1]), want)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("bad", [900, 10**9])
def test_an_index_that_is_too_large(bad):
    index = np.append(RNG.integers(0, 900, 899), bad)
    with pytest.raises(IndexError):
        rows_add(900, index, np.ones((900, 64), np.float32))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("values", [(20, 30, 40, 5), (1,), (40, 5), (20, 30, 1, 5)])
def test_added_to_what_is_there(values):
    x, index = RNG.standard_normal((60, 40, 5)).astype(np.float32), RNG.integers(0, 60, (20, 30))
    values = RNG.standard_normal(values).astype(np.float32)
    want = x.copy()
    np.add.at(want, (index, slice(None), slice(None)), values)
    combine_at(np.add, x, (index, slice(None), slice(None)), values)
    assert np.array_equal(x, want)
