"""Sorting by packed keys in NumPy: torch's order, ties by position, as the plain way gives."""
import ml_dtypes
import numpy as np
import pytest

import torchlike
from torchlike.ops import sorting

RNG = np.random.default_rng(0)


def _numbers(kind, shape):
    x = RNG.integers(-9, 9, shape)
    if np.dtype(kind).kind not in "fV":
        x = x.astype(kind)
        if np.dtype(kind).itemsize > 1:
            x.reshape(-1)[:2] = np.iinfo(kind).max, np.iinfo(kind).min
        return x
    x = (x / 4).astype(kind)
    x.reshape(-1)[::7] = np.nan
    x.reshape(-1)[3::11] = -np.inf
    x.reshape(-1)[5::11] = np.inf
    x.reshape(-1)[4::13] = -0.0
    return x


def _order(x, dim, descending):
    wide = x.astype(np.float64) if x.dtype.kind in "fV" else x.astype(np.int64)
    if not descending:
        return np.argsort(wide, dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(np.argsort(np.flip(wide, dim), dim, kind="stable"), dim)


def _same(found, x, index):
    assert found[1].dtype == np.int64 and np.array_equal(found[1], index)
    assert found[0].tobytes() == np.take_along_axis(x, index, 1).tobytes()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int64, np.int32, np.uint8, np.int8, np.bool_])
@pytest.mark.parametrize("shape", [(5, 40), (3, 17, 4), (1, 50)])
@pytest.mark.parametrize("block", [1 << 15, 64])
def test_the_order_is_stable(monkeypatch, kind, shape, block):
    x = _numbers(kind, shape) if kind is not np.bool_ else RNG.random(shape) > 0.5
    monkeypatch.setattr(sorting, "BLOCK", block)
    monkeypatch.setattr(sorting, "FEW", 0)
    up, down = _order(x, 1, False), _order(x, 1, True)
    _same(sorting._sort(np, x, 1, False), x, up)
    _same(sorting._sort(np, x, 1, True), x, down)
    _same(sorting._at_rank(np, x, 4, 1, True), x, up[:, 4:5])
    for k in (0, 1, 3, 16):
        for order, largest in ((down, True), (up, False)):
            _same(sorting._topk(np, x, k, 1, largest), x, order[:, :k])


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.int8])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("shape", "dim"), [((3, 400), 1), ((400, 3), 0), ((2, 300, 2), 1), ((500,), 0)])
def test_of_equal_numbers_the_first_are_the_largest(monkeypatch, kind, largest, shape, dim):
    """Also where the last of them that is chosen has equals which are not: as the compiled program chooses (OpenNMT's search over scores of -inf)."""
    for few in (0, 1 << 40):
        monkeypatch.setattr(sorting, "FEW", few)
        for values in (1, 3, 40):
            x = RNG.integers(0, values, shape).astype(kind)
            if kind is np.float32 and values == 3:
                x[x == 0] = -np.inf
            for k in (1, 5, 17):
                order = np.argsort(-x.astype(np.float64) if largest else x, dim, kind="stable")
                assert np.array_equal(sorting._topk(np, x, k, dim, largest)[1], order[(slice(None),) * dim + (slice(0, k),)])


def test_far_numbers_are_not_packed():
    x = RNG.integers(-2**62, 2**62, (4, 2000))
    assert sorting.packed(x, False) is None
    assert np.array_equal(sorting.argsort_array(np, x, 1, False), np.argsort(x, 1, kind="stable"))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("few", [0, 1 << 40])
def test_distinct_values(monkeypatch, kind, few):
    monkeypatch.setattr(sorting, "FEW", few)
    x = RNG.integers(-5, 5, (30, 9)).astype(kind)
    values, inverse, counts = torchlike.tensor(x).unique(return_inverse=True, return_counts=True)
    want = np.unique(x, return_inverse=True, return_counts=True)
    assert np.array_equal(values.numpy(), want[0]) and np.array_equal(inverse.numpy(), want[1].reshape(x.shape)) and np.array_equal(counts.numpy(), want[2])
    assert np.array_equal(torchlike.tensor(x).unique().numpy(), want[0])


def test_distinct_numbers_are_found_by_keys(monkeypatch):
    def slow(*args):
        raise AssertionError("lexsort")
    monkeypatch.setattr(np, "lexsort", slow)
    assert torchlike.tensor([3, 1, 3]).unique().tolist() == [1, 3]
