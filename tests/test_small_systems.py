"""Many small systems at once, compiled for the CPU: as exact as LAPACK's, with its pivots and its errors."""
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program
from torchlike.ops import small_systems


def matrices(n, dtype=np.float32, count=512):
    return np.random.default_rng(n).standard_normal((count // 2, 2, n, n)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_inverses_are_as_exact_as_torchs(n, dtype):
    a = matrices(n, dtype)
    a[0, 0] = np.eye(n)[::-1]  # zeros in the way of each pivot
    with program.tier("compiled"):
        ours, info = (t.numpy() for t in torchlike.linalg.inv_ex(torchlike.tensor(a)))
    theirs = torch.linalg.inv(torch.tensor(a)).numpy()
    wide = a.astype(np.longdouble)
    exact = np.linalg.inv(a.astype(np.float64)).astype(np.longdouble)
    for _ in range(3):  # Newton's steps
        exact = exact @ (2 * np.eye(n, dtype=np.longdouble) - wide @ exact)
    scale = np.linalg.cond(a.astype(np.float64)) * np.abs(exact).max((-2, -1)) * np.finfo(dtype).eps
    mine, torchs = (np.abs(x - exact).max((-2, -1)) / scale for x in (ours, theirs))
    assert not info.any() and mine.max() <= 2 and mine.mean() <= 1.5 * torchs.mean()


def test_a_singular_matrix_is_named():
    a = matrices(3)
    a[7, 1, 2] = a[7, 1, 1] * 0
    with program.tier("compiled"):
        ours, theirs = (t.linalg.inv_ex(t.tensor(a)).info.numpy() for t in (torchlike, torch))
        with pytest.raises(torchlike.linalg.LinAlgError, match="singular"):
            torchlike.linalg.inv(torchlike.tensor(a)).numpy()
    np.testing.assert_array_equal(ours, theirs)


def test_solutions_and_gradients_of_both_orders_are_torchs():
    a, b = matrices(3, np.float64) + 3 * np.eye(3), np.random.default_rng(0).standard_normal((256, 2, 3, 2))

    def run(t):
        m, r = (t.tensor(x, requires_grad=True) for x in (a, b))
        made = (t.linalg.solve(m, r) ** 2).sum() + t.linalg.inv(m).sin().sum()
        first = t.autograd.grad(made, (m, r), create_graph=True)
        second = t.autograd.grad(sum((g ** 2).sum() for g in first), (m, r))
        return [x.detach().numpy() for x in (made, *first, *second)]
    with program.tier("compiled"):
        ours = run(torchlike)
    for x, y in zip(ours, run(torch), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-7, atol=1e-9)


def test_few_or_large_ones_are_lapacks():
    few, many, large = (np.zeros(s, np.float32) for s in ((8, 3, 3), (512, 3, 3), (512, 5, 5)))
    assert [small_systems.are_small(m, m) for m in (few, many, large)] == [False, True, False]
