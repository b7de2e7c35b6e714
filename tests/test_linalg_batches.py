"""Factorizations of many small matrices in NumPy: all at once, with the results of one after the other."""
import numpy as np
import pytest

from torchlike.ops import linalg_factor, linalg_solve
from torchlike.ops.linalg_common import each, lapack

RNG = np.random.default_rng(0)
SHAPES = [(50, 3, 3), (2, 20, 5, 5), (40, 5, 3), (30, 3, 5), (1, 3, 3), (0, 3, 3), (3, 3), (4, 0, 0), (0, 0)]


def _matrices(kind, shape):
    made = RNG.standard_normal(shape)
    return (made + 1j * RNG.standard_normal(shape) if np.dtype(kind).kind == "c" else made).astype(kind)


def _one_lu(m):
    if not m.size:
        return m, np.arange(1, min(m.shape) + 1, dtype=np.int32), np.int32(0)
    lu, pivots, info = lapack(m.dtype, "getrf")(m)
    return lu, pivots.astype(np.int32) + 1, np.int32(info)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(kind, shape):
    a = _matrices(kind, shape)
    a[..., :1, :1] = 0
    a[:1] = 0
    for ours, theirs in zip(linalg_factor._lu_numpy(a, True), each(_one_lu, a, ranks=(2,))):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype and np.allclose(ours, theirs, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-1] == s[-2]])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular(kind, shape, upper, unit):
    a, b = _matrices(kind, shape) + 3 * np.eye(shape[-1], dtype=kind), _matrices(kind, (*shape[:-1], 2))
    x = linalg_solve._triangular(np, a, b, upper, unit)
    m = np.triu(a) if upper else np.tril(a)
    if unit:
        m = m * (1 - np.eye(shape[-1], dtype=kind)) + np.eye(shape[-1], dtype=kind)
    assert x.shape == b.shape and x.dtype == b.dtype and np.allclose(m @ x, b, atol=1e-3)


def test_triangular_with_zeros_on_the_diagonal_divides_by_them():
    a = np.tile(np.array([[1, 0], [0, 0]], np.float32), (5, 1, 1))
    x = linalg_solve._triangular(np, a, np.ones((5, 2, 1), np.float32), True, False)
    assert np.isinf(x[:, 1]).all()


@pytest.mark.parametrize("kind", [np.float32, np.complex64])
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-1] == s[-2]])
def test_cholesky(kind, shape):
    a = _matrices(kind, shape)
    a = a @ a.swapaxes(-1, -2).conj() + np.eye(shape[-1], dtype=kind)
    factor, info = linalg_factor._cholesky(np, a, False)
    assert factor.dtype == kind and info.shape == shape[:-2] and info.dtype == np.int32 and not info.any()
    assert np.allclose(factor @ factor.swapaxes(-1, -2).conj(), a, atol=1e-3) and not np.triu(factor, 1).any()


def test_cholesky_says_which_minor_failed():
    a = np.stack([np.eye(2, dtype=np.float32), np.diag(np.array([1, -1], np.float32))])
    assert linalg_factor._cholesky(np, a, False)[1].tolist() == [0, 2]


def test_many_small_matrices_are_not_taken_one_by_one(monkeypatch):
    def one_by_one(*args, **kwargs):
        raise AssertionError("one by one")
    for module in (linalg_factor, linalg_solve):
        monkeypatch.setattr(module, "each", one_by_one)
    a = _matrices(np.float32, (40, 3, 3))
    linalg_factor._lu_numpy(a, True)
    linalg_solve._triangular(np, a, a, True, False)
    linalg_factor._cholesky(np, a @ a.swapaxes(-1, -2) + np.eye(3, dtype=np.float32), False)
    linalg_factor._order(np, np.tile(np.array([2, 2, 3]), (40, 1)), 3)
