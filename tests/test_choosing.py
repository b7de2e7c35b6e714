"""Choice by a mask in NumPy: the bits of np.where, in less time."""
import time

import ml_dtypes
import numpy as np
import pytest

from torchlike.ops.choosing import FEW, choose

N = 2 * FEW
RNG = np.random.default_rng(0)
KINDS = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int64, np.int8, np.bool_, np.complex64, np.complex128)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shapes", [((N,), (N,)), ((N,), ()), ((), (N,)), ((), ()), ((4, 1), (N // 4,)), ((4, N // 4), (4, 1)), ((3, 1, 1), (N // 4,))])
def test_the_bits_of_where(kind, shapes):
    mask = RNG.random((4, N // 4) if max(map(len, shapes)) > 1 else N) > 0.5
    a, b = (np.asarray(RNG.standard_normal(s) * 3).astype(kind) for s in shapes)
    for x, y in ((a, b), (np.zeros_like(a), b), (a, np.zeros_like(b)), (a, -np.zeros_like(b) if kind is not np.bool_ else b)):
        want, got = np.where(mask, x, y), choose(np, mask, x, y)
        assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


def test_what_is_not_finite_stays():
    x = np.resize(np.array([np.nan, np.inf, -np.inf, -0.0, 1], np.float32), N)
    mask = np.arange(N) % 3 == 0
    for y in (np.zeros((), np.float32), x[::-1].copy(), 0.0, 2, np.zeros((), np.float64)):
        want, got = np.where(mask, x, y), choose(np, mask, x, y)
        assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


def test_a_strided_mask_and_strided_arrays():
    mask, x = RNG.random((2 * N, 2)) > 0.5, RNG.standard_normal((2 * N, 2)).astype(np.float32)
    assert np.array_equal(choose(np, mask[::2, 0], x[::2, 1], x[1::2, 0]), np.where(mask[::2, 0], x[::2, 1], x[1::2, 0]))


def test_a_random_mask_costs_no_branches():
    x = RNG.standard_normal(1 << 18).astype(np.float32)
    mask, zero = x > 0, np.zeros((), np.float32)

    def seconds(f):
        times = []
        for _ in range(7):
            start = time.process_time()
            f()
            times.append(time.process_time() - start)
        return min(times)
    assert seconds(lambda: choose(np, mask, x, zero)) < seconds(lambda: np.where(mask, x, zero)) / 2
