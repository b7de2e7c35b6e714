"""Values that are read across their rows, compiled: the same numbers as real torch, and the copies by themselves."""
import numpy as np
import pytest
import torch as real

import torchlike
from torchlike._core import reordering
from torchlike._core.program import tier


def doubled(torch, x):
    return (x.t() * 2).contiguous()


def pooled(torch, x):
    return torch.nn.functional.avg_pool2d(torch.nn.functional.gelu(x.view(2, 16, 16, 512)).permute(0, 3, 1, 2), 2)


def normalized(torch, x):
    return torch.nn.functional.layer_norm(x.view(2, 256, 512).transpose(1, 2), (256,))


def written(torch, x):
    return x.exp().view(2, 256, 512).transpose(1, 2).contiguous()


def added(torch, x):
    return x + x.t()


def summed(torch, x):
    return x.exp().t().sum(1)


def multiplied(torch, x):
    return x @ x.tanh().t()


def small(torch, x):
    return (x[:100, :100].exp().t() * 2).contiguous()


def _made(f, monkeypatch) -> int:
    """How many values the program of f has as arrays for being read across."""
    found = []
    across = reordering.across
    monkeypatch.setattr("torchlike._core.stencils.across", lambda *args: found.append(across(*args)) or found[-1])
    with torchlike.immediate(False), tier("compiled"):
        f(torchlike, torchlike.tensor(np.linspace(-2, 2, 512 * 512, dtype=np.float32).reshape(512, 512))).numpy()
    return max(map(len, found), default=0)


@pytest.mark.parametrize(("f", "made"), [(doubled, 1), (pooled, 1), (normalized, 1), (written, 1), (added, 0), (summed, 0), (multiplied, 0), (small, 0)])
def test_what_is_read_across_is_an_array(f, made, monkeypatch):
    assert _made(f, monkeypatch) == made


@pytest.mark.parametrize("f", [doubled, pooled, normalized, written, added, summed, multiplied])
def test_numbers_and_gradients_are_torchs(f):
    found = []
    for torch in (real, torchlike):
        x = torch.linspace(-2, 2, 512 * 512, dtype=torch.float64).view(512, 512).clone().requires_grad_()
        with tier("compiled"):
            y = f(torch, x)
            y.sin().sum().backward()
            found.append([y.detach().numpy(), x.grad.numpy()])
    for want, got in zip(*found):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
