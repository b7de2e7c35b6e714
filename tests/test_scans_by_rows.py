"""Running sums down the rows of large arrays in NumPy, which are as few as chunks of a sequence have: the numbers of its own accumulation."""
import numpy as np
import pytest

from torchlike.ops import scans

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.complex64])
@pytest.mark.parametrize("shape, dim", [((40, 300), 0), ((5, 40, 64), 1), ((5, 40, 64), -2), ((40, 16, 17), 0), ((8, 2, 26, 20), 1),
                                        ((300, 3), 1), ((3, 256), 0)])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_the_same_numbers(monkeypatch, kind, shape, dim, name):
    taken, by_row = [], scans._row_by_row
    monkeypatch.setattr(scans, "_row_by_row", lambda *args: taken.append(args) or by_row(*args))
    x = (RNG.standard_normal(shape) * 2).astype(kind)
    want = scans._SCANS[name].ufunc.accumulate(x, axis=dim, dtype=scans._wide(x.dtype)).astype(kind)
    got = scans.running(np, x, dim, name)
    assert len(taken) == 1 and got.dtype == kind and got.flags.c_contiguous and np.array_equal(got, want, equal_nan=kind is not np.int64)


@pytest.mark.parametrize("shape, dim", [((8, 100, 3), 1), ((300, 40), 1), ((1, 8, 300), 0)])
@pytest.mark.parametrize("name", ["cumsum", "cummax"])
def test_small_rows_long_ones_and_a_single_one(monkeypatch, shape, dim, name):
    monkeypatch.setattr(scans, "_row_by_row", None)
    x = RNG.standard_normal(shape).astype(np.float32)
    assert np.array_equal(scans.running(np, x, dim, name), scans._SCANS[name].ufunc.accumulate(x, axis=dim, dtype=np.float64).astype(np.float32))
