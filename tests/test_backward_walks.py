"""Backward walks that are planned once and recorded whole: a graph that comes back gives what its first walk gave, with the numbers of its own time."""
from __future__ import annotations

import numpy as np
import pytest
import torch as real
from same import same

import torchlike
from torchlike.autograd import walk

PROGRAMS = {
    "scalars": lambda torch, x, w, k: ((x * (k + 0.5)).tanh() + w ** (2 + k)).sum(),
    "shared": lambda torch, x, w, k: (x * w + x.sin() * w + (x + w) * (x + w)).sum(),
    "views": lambda torch, x, w, k: (x.t()[1:] @ w[:, :2] + k).pow(2).mean(),
    "several results": lambda torch, x, w, k: sum(part.exp().sum() * (i + k) for i, part in enumerate((x * w).unbind(0)[:2])),
    "in place": lambda torch, x, w, k: ((x * w).mul_(k + 1).add_(w)).sum(),
    "second output unused": lambda torch, x, w, k: torch.max(x * w, 1)[0].sum() * k,
    "complex number": lambda torch, x, w, k: (x * w * complex(k, 1)).abs().sum(),
}


def repeated(torch, program, ending) -> list:
    x = torch.arange(9.0).view(3, 3).div(7).requires_grad_()
    w = torch.arange(9.0, 0.0, -1.0).view(3, 3).div(5).requires_grad_()
    found = []
    for k in range(6):
        ending(torch, program(torch, x, w, k), (x, w))
        found += [t.grad.tolist() for t in (x, w)]
        if k == 3:
            x.grad = None  # from here on x starts again and w goes on
    return found


ENDINGS = {
    "plain": lambda torch, y, leaves: y.backward(),
    "twice": lambda torch, y, leaves: (y.backward(retain_graph=True), y.backward()),
    "weighted": lambda torch, y, leaves: y.backward(torch.tensor(0.25)),
    "two roots": lambda torch, y, leaves: torch.autograd.backward([y, (leaves[0] * leaves[1]).sum() * y]),
    "read between": lambda torch, y, leaves: (y.item(), y.backward()),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_comes_back(name, ending):
    ours = repeated(torchlike, PROGRAMS[name], ENDINGS[ending])
    np.testing.assert_allclose(ours, repeated(real, PROGRAMS[name], ENDINGS[ending]), rtol=1e-5, atol=1e-5)


def test_a_graph_that_comes_back_is_not_walked_again(monkeypatch):
    x = torchlike.ones(3, requires_grad=True)
    with torchlike.immediate(False):
        for k in range(5):
            if k == 3:  # the first backward finds no `.grad`, the second sees the structure, the third plans it
                monkeypatch.setattr(walk, "Walk", None)
            (x * k).sin().sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [sum(k * np.cos(k) for k in range(5))] * 3, rtol=1e-6)


def test_second_backward_raises_on_a_replayed_graph():
    x = torchlike.ones(3, requires_grad=True)
    for _ in range(3):
        y = (x * x).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


def test_hooks_still_run():
    def run(torch, watched: bool):
        x, seen = torch.ones(3, requires_grad=True), []
        for k in range(3):
            y = x * 2
            if watched and k:
                y.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
            (y * y).sum().backward()
        return x.grad.tolist(), seen
    assert run(torchlike, True) == run(real, True) and run(torchlike, False) == run(real, False)


def test_dead_leaf_and_dropped_results():
    x = torchlike.ones(3, requires_grad=True)
    for _ in range(3):
        w = torchlike.full((3,), 2.0, requires_grad=True)
        y = (x * w).sum()
        del w
        y.backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


@same
def test_a_leaf_is_its_own_root(torch):
    x, found = torch.ones(3, requires_grad=True), []
    for _ in range(4):
        x.backward(torch.arange(3.0))
        torch.autograd.backward([x, x * 2], [torch.ones(3), torch.ones(3)])
        found.append(x.grad.clone())
    return found
