"""cross_entropy and nll_loss in NumPy: rows with one target each take a short way, which gives the general one's numbers."""
import numpy as np
import pytest

from torchlike.nn._functional import cross_entropy as ce

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_same_numbers(monkeypatch, kind, reduction):
    x, target = RNG.standard_normal((12, 7)).astype(kind), RNG.integers(0, 7, 12)
    g = RNG.standard_normal(12 if reduction == "none" else ()).astype(kind) if reduction == "none" else np.asarray(0.7, kind)
    calls = [lambda: ce._cross_entropy(np, x, target, None, -100, reduction, 0.0), lambda: ce._nll(np, x, target, None, -100, reduction),
             lambda: ce._cross_entropy_vjp(np, g, x, target, None, -100, reduction, 0.0)[0], lambda: ce._nll_grad(np, g, x, target, None, -100, reduction)]
    ours = [np.asarray(f()) for f in calls]
    taken = []
    monkeypatch.setattr(ce, "_rows", lambda *args: taken.append(args))
    for mine, f in zip(ours, calls):
        theirs = np.asarray(f())
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape and np.array_equal(mine, theirs)
    assert len(taken) >= 4


def test_which_rows_take_the_general_way():
    x, target = np.zeros((3, 5), np.float32), np.array([1, -100, 2])
    assert ce._rows(np, x, target, None, -100) is None
    assert ce._rows(np, x, target % 5, np.ones(5), -100) is None
    assert ce._rows(np, x[:0], target[:0], None, -100) is None
    assert ce._rows(np, x, target % 5, None, -100).tolist() == [0, 1, 2]
