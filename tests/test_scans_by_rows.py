"""Running sums down the rows of large arrays in NumPy: the numbers of its own accumulation."""
import numpy as np
import pytest

from torchlike.ops import scans

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.complex64])
@pytest.mark.parametrize("shape, dim", [((40, 300), 0), ((5, 40, 64), 1), ((5, 40, 64), -2), ((40, 16, 17), 0)])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_the_same_numbers(monkeypatch, kind, shape, dim, name):
    taken, by_row = [], scans._row_by_row
    monkeypatch.setattr(scans, "_row_by_row", lambda *args: taken.append(args) or by_row(*args))
    x = (RNG.standard_normal(shape) * 2).astype(kind)
    want = scans._SCANS[name].ufunc.accumulate(x, axis=dim, dtype=scans._wide(x.dtype)).astype(kind)
    got = scans.running(np, x, dim, name)
    assert len(taken) == 1 and got.dtype == kind and got.flags.c_contiguous and np.array_equal(got, want, equal_nan=kind is not np.int64)
