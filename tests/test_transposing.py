"""Copies of transposed arrays whose rows clash in the cache: the same bits."""

import numpy as np
import pytest

import torchlike
from torchlike._core import program
from torchlike._core.transposing import copy_of

ARRAYS = [np.zeros((300, 1024), np.float32).T, np.zeros((3, 300, 512), np.float32).transpose(0, 2, 1),
          np.zeros((300, 1024), np.complex128).T, np.zeros((1030, 1024), bool).T,
          np.zeros((300, 1024), np.float32).T[10:], np.zeros((300, 1024), np.float32)[:, ::2].T, np.zeros((300, 1000), np.float32).T,
          np.zeros((8, 64, 32, 32), np.float32).transpose(0, 2, 3, 1),
          np.zeros((300, 1024), np.float32)[::-1].T]


@pytest.mark.parametrize("x", ARRAYS, ids=range(len(ARRAYS)))
def test_copies(x):
    x[...] = np.random.default_rng(0).integers(0, 100, x.shape)
    made = copy_of(x)
    assert made.flags.c_contiguous and made.flags.owndata and made.dtype == x.dtype and np.array_equal(made, x)


def test_contiguous():
    x = np.random.default_rng(0).standard_normal((300, 1024)).astype(np.float32)
    with program.tier("numpy"):
        assert np.array_equal(torchlike.from_numpy(x).t().contiguous().numpy(), x.T)
