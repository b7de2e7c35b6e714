"""x[mask] = one number: torch's values, gradients, nodes and errors, without a look at the mask."""

import numpy as np
import pytest

from torchlike._core import program

WRITES = {
    "leading dimensions": lambda t, y, m, v: y.__setitem__(m[..., 0], v),
    "all dimensions": lambda t, y, m, v: y.__setitem__(m, v),
    "a plain number": lambda t, y, m, v: y.__setitem__(m, 0),
    "last dimension": lambda t, y, m, v: y.__setitem__((..., t.tensor([True, False, True])), v),
    "inner dimension": lambda t, y, m, v: y.__setitem__((slice(None), m[0, :, 0]), v),
    "of a part": lambda t, y, m, v: y.__setitem__((slice(1, 4), m[0, :, 0], 0), v),
    "of a row": lambda t, y, m, v: y[0].__setitem__(y[0] > 0, v),
    "of a transposed view": lambda t, y, m, v: y.transpose(0, 1).__setitem__(m.transpose(0, 1), v),
    "one element of two dimensions": lambda t, y, m, v: y.__setitem__(m, v.reshape(1, 1)),
    "another dtype": lambda t, y, m, v: y.__setitem__(m, t.tensor(7)),
    "a new dimension": lambda t, y, m, v: y.__setitem__((None, m), v),
    "a bool": lambda t, y, m, v: y.__setitem__(True, v),
    "a mask of nothing": lambda t, y, m, v: y.__setitem__(y != y, v),
    "a wrong shape": lambda t, y, m, v: y.__setitem__(m[:, :2], v),
    "several numbers": lambda t, y, m, v: y.__setitem__(m[..., 0], t.arange(3.0)),
}


def outcome(torch, write):
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((5, 4, 3)).astype(np.float32), requires_grad=True)
    v = torch.tensor(2.5, requires_grad=True)
    y = x * 1
    try:
        write(torch, y, torch.tensor(rng.random((5, 4, 3)) < 0.5), v)
    except Exception as error:
        return type(error).__name__, str(error)
    grads = torch.autograd.grad((y * y * torch.arange(60.0).view(5, 4, 3)).sum(), [x, v], allow_unused=True)
    return type(y.grad_fn).__name__, y.detach().numpy().tolist(), [None if g is None else np.round(g.numpy(), 3).tolist() for g in grads]


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("name", WRITES)
def test_writes(oracle, subject, name, tier):
    with program.tier(tier):
        ours = outcome(subject, WRITES[name])
    assert ours == outcome(oracle, WRITES[name])


@pytest.mark.usefixtures("recorded")
def test_a_mask_stays_unknown(subject):
    """The program goes on: neither the mask nor how many elements it has is looked at."""
    x = subject.randn(10)
    mask = x > 0
    x[mask] = 0.0
    assert mask._value.array is None and x._current().array is None
    assert (x.numpy() <= 0).all()
