"""An optimizer's update writes where the old weight was: no copy of a weight in the program, and torch's numbers."""
from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import flow, program_info, ties
from torchlike._core.program import tier

WIDTH = 96  # a weight of 36 KB


def chain(torch):
    nn = torch.nn
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH))


def shared(torch):
    """One weight for the embedding and the head."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.body, self.head = nn.Embedding(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.body(self.embed(x.argmax(1))).tanh())
    return Model()


def convolutions(torch):
    nn = torch.nn
    return nn.Sequential(nn.Unflatten(1, (24, 2, 2)), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.Flatten())


def trained(torch, network, optimizer, steps: int = 3, big: float = 1.0, **kinds):
    torch.manual_seed(0)
    model = network(torch)
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=0.01, **kinds)
    x, y = big * torch.randn(16, WIDTH), torch.randint(0, WIDTH, (16,))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().numpy() for p in model.parameters()]


def layers(*inner):
    """A network with these widths inside."""
    def network(torch):
        nn = torch.nn
        widths = WIDTH, *inner, WIDTH
        return nn.Sequential(*[m for a, b in zip(widths, widths[1:]) for m in (nn.Linear(a, b), nn.Tanh())])
    return network


def program_with(width: int):
    """The longest program with a square weight of that width, and its executable."""
    info = max((info for info in program_info.infos if info.executables and (width, width) in [a.shape for a in info.input_avals]), key=lambda info: len(info.steps))
    return info, info.executables[-1]


@pytest.mark.parametrize("optimizer, kinds", [("SGD", {}), ("SGD", {"momentum": 0.9}), ("AdamW", {})], ids=["SGD", "momentum", "AdamW"])
@pytest.mark.parametrize("network", [chain, shared, convolutions])
def test_numbers(network, optimizer, kinds):
    with tier("compiled"):
        ours = trained(torchlike, network, optimizer, **kinds)
    theirs = trained(torch, network, optimizer, **kinds)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
    for a, b in zip(ours[1], theirs[1]):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("width, tie", [(101, True), (103, False)])
@pytest.mark.usefixtures("recorded")
def test_no_weight_is_copied(monkeypatch, width, tie):
    if not tie:
        monkeypatch.setattr(ties, "LARGE", 1 << 30)
    with tier("compiled"):
        trained(torchlike, layers(width, width), "SGD")
    copies = re.findall(rf"f32\[{width},{width}\]\S* copy\(%?Arg", program_with(width)[1].call.as_text())
    assert len(copies) == (0 if tie else 1)


@pytest.mark.usefixtures("recorded")
def test_only_what_reads_the_weight_beside_its_gradient():
    with tier("compiled"):
        trained(torchlike, layers(107, 107), "SGD")
    info, exe = program_with(107)
    calls, results = flow.calls(info.steps)
    added = [c for c in ties.tied(calls, exe.donated, [results[i] for i in exe.live], info.input_avals) if c.plan.op is ties.TIED]
    assert [[a.shape for a in c.plan.avals] for c in added] == [[(107, 107), (), (16, 107)], [(WIDTH, 107), (), (16, 107)]]  # the first layer's input has no gradient


@pytest.mark.parametrize("big", [float("inf"), float("nan"), 1e30])
def test_what_is_no_number_stays_where_it_is(big):
    with tier("compiled"):
        ours = trained(torchlike, chain, "SGD", 1, big)
    theirs = trained(torch, chain, "SGD", 1, big)
    np.testing.assert_array_equal(np.isnan(ours[0]), np.isnan(theirs[0]))
    for a, b in zip(ours[1], theirs[1]):
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
