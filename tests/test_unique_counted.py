"""torch.unique of whole numbers that lie close together, which are counted: beside real torch, and without sorting."""
import numpy as np
import pytest
import torch

import torchlike
from torchlike.ops import sets

DATA = [np.arange(63).reshape(7, 9) % 5, np.arange(400) * 7919 % 6 - 3, np.array([119, 100, 105]), np.zeros((0, 2), np.int64), np.array(3), np.array([-128, 127, -128]),
        np.arange(300) * 31 % 200 - 100]


@pytest.mark.parametrize("kind", ["int64", "int32", "int16", "int8", "uint8", "bool"])
@pytest.mark.parametrize("data", DATA, ids=range(len(DATA)))
def test_as_in_torch(data, kind, monkeypatch):
    if data.size:
        monkeypatch.setattr(sets, "_sorted_order", None)
    x, y = (t.tensor(data).to(getattr(t, kind)) for t in (torch, torchlike))
    for inverse in (False, True):
        for counts in (False, True):
            want, got = (t.unique(a, return_inverse=inverse, return_counts=counts) for t, a in ((torch, x), (torchlike, y)))
            for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (want, got)), strict=True):
                assert tuple(a.shape) == tuple(b.shape) and b.dtype is getattr(torchlike, str(a.dtype).removeprefix("torch."))
                np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_far_apart():
    """They would need too large a table."""
    for data in ([-2 ** 63, 2 ** 63 - 1, 0, 0], [0, 10 ** 6, 5, 5]):
        want, got = (t.unique(t.tensor(data), return_inverse=True, return_counts=True) for t in (torch, torchlike))
        for a, b in zip(want, got):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
