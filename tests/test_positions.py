"""Elements by index arrays through the flat array: what NumPy's own indexing gives."""
import numpy as np
import pytest

from torchlike.ops import positions
from torchlike.ops.positions import combine_at, elements, set_at

RNG = np.random.default_rng(0)
SHAPE = (4, 5, 6)


def _index(n, *shape, negative=False):
    return RNG.integers(-n if negative else 0, n, shape)


EVERY = slice(None)
WHERE = [
    lambda: (_index(4, 7), EVERY, EVERY), lambda: (EVERY, _index(5, 7), EVERY), lambda: (EVERY, EVERY, _index(6, 3, 2)),
    lambda: (_index(4, 7, negative=True), _index(5, 7, negative=True), EVERY), lambda: (EVERY, _index(5, 7, 1), _index(6, 2, negative=True)),
    lambda: (_index(4, 7, 2), _index(5, 2), _index(6, 1)), lambda: (_index(4, 7), EVERY, _index(6, 7)), lambda: (_index(4).astype(np.int32), EVERY, EVERY),
    lambda: (_index(4, 0), EVERY, EVERY), lambda: (np.arange(4)[:, None, None], np.arange(3)[:, None], _index(6, 4, 3, 5))]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("kind", [np.float32, np.int64, np.float16])
def test_as_indexing(monkeypatch, where, kind):
    monkeypatch.setattr(positions, "FEW", 0)
    where = where()
    x = (RNG.standard_normal(SHAPE) * 9).astype(kind)
    want = x[where]
    assert elements(x, where).tobytes() == want.tobytes() and elements(x, where).shape == want.shape
    for values in ((RNG.standard_normal(want.shape) * 9).astype(kind), np.asarray(2, kind)):
        ours, theirs = x.copy(), x.copy()
        set_at(ours, where, values)
        theirs[where] = values
        assert np.array_equal(ours, theirs)
        for ufunc in (np.add, np.multiply, np.maximum):
            ours, theirs = x.copy(), x.copy()
            combine_at(ufunc, ours, where, values)
            ufunc.at(theirs, where, values)
            assert ours.tobytes() == theirs.tobytes()


def test_a_transposed_target():
    x, where = np.zeros((600, 3)).T, (np.array([0, 1, 1]), EVERY)
    combine_at(np.add, x, where, 1.0)
    assert x.sum(1).tolist() == [600, 1200, 0]
