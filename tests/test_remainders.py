"""fmod of float32 numbers by float64 quotients: the bits of C's."""
import numpy as np
import pytest

from torchlike.ops import remainders
from torchlike.ops.remainders import fmod

RNG = np.random.default_rng(0)


def _pairs():
    n = 600
    for low, high in ((-6, -2), (-2, 2), (2, 7), (7, 12)):
        x = (RNG.standard_normal(n) * 10 ** RNG.uniform(low, high, n)).astype(np.float32)
        for y in (RNG.standard_normal(n).astype(np.float32), np.asarray(0.7, np.float32), np.asarray(-3, np.float32)):
            yield x, y
            yield np.round(x * 8) / 8, np.round(y * 8) / 8
            yield (y * RNG.integers(-1000, 1000, n)).astype(np.float32), y
    strange = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 1e-45, 3e38], np.float32)
    yield np.repeat(strange, len(strange)), np.tile(strange, len(strange))


@pytest.mark.parametrize("few", [0, remainders.FEW])
def test_the_same_bits(monkeypatch, few):
    monkeypatch.setattr(remainders, "FEW", few)
    with np.errstate(all="ignore"):
        for x, y in _pairs():
            want, got = np.fmod(x, y), fmod(np, x, y)
            assert got.dtype == want.dtype and np.array_equal(np.isnan(got), np.isnan(want))
            assert got[~np.isnan(got)].tobytes() == want[~np.isnan(want)].tobytes()


def test_large_arrays_are_not_divided_bit_by_bit(monkeypatch):
    def slow(*args):
        raise AssertionError("np.fmod")
    x, y = RNG.standard_normal(2 * remainders.FEW).astype(np.float32), np.asarray(0.7, np.float32)
    want = np.fmod(x, y)
    monkeypatch.setattr(np, "fmod", slow)
    assert np.array_equal(fmod(np, x, y), want)
