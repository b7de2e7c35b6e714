"""index_put of one number at a mask: beside real torch, and without asking for the positions."""
import numpy as np
import pytest
import torch

import torchlike
from torchlike.ops import index_slices


@pytest.mark.parametrize("shape, masked", [((4, 5), (4, 5)), ((4, 5), (4,)), ((4, 5, 2), (4, 5)), ((0, 3), (0, 3))])
@pytest.mark.parametrize("value", [2.0, [3.0], 4])
def test_as_in_torch(shape, masked, value, monkeypatch):
    monkeypatch.setattr(index_slices, "_prepared", None)

    def values(t):
        x, v = t.arange(float(np.prod(shape))).view(shape).requires_grad_(), t.tensor(value, requires_grad=value != 4)
        mask = t.arange(int(np.prod(masked))).view(masked) % 3 == 0
        y = (x * 2).index_put((mask,), v)
        z = x.detach().clone()
        z.index_put_((mask,), v.detach())
        return [a.detach().numpy() for a in (y, z, *t.autograd.grad(y.square().sum(), (x, v)[:1 + v.requires_grad]))], y.grad_fn.name()
    (want, name), (got, ours) = values(torch), values(torchlike)
    assert name == ours
    for a, b in zip(want, got):
        np.testing.assert_array_equal(a, b)


def test_refused():
    for t in (torch, torchlike):
        with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
            t.ones(3).index_put_((t.ones(3, dtype=t.bool),), t.tensor([1, 1, 1]))
        with pytest.raises(IndexError, match="The shape of the mask"):
            t.ones(3).index_put_((t.ones(4, dtype=t.bool),), t.tensor(1.0))
