"""Loops of stencils, compiled: the same numbers as real torch, and each step's values computed once."""
from __future__ import annotations

import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import executor
from torchlike._core.program import tier


def life(torch, steps):
    board = (torch.arange(64 * 64) * 7919 % 10 < 3).int().view(64, 64)
    for _ in range(steps):
        around = sum(torch.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        board = ((around == 3) | ((board == 1) & (around == 2))).int()
    return board


def wave(torch, steps, u=None):
    u = torch.linspace(0, 3, 64 * 64).view(64, 64).sin() if u is None else u
    for _ in range(steps):
        lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        u = torch.nn.functional.pad(torch.tanh(u[1:-1, 1:-1] + 0.1 * lap), (1, 1, 1, 1))
    return u


def trained_wave(torch, steps):
    u = torch.linspace(0, 3, 64 * 64).view(64, 64).sin().requires_grad_()
    wave(torch, steps, u).square().sum().backward()
    return u.grad


def heat(torch, steps):
    u = torch.zeros(64, 64)
    u[:, 0] = 1.0
    for _ in range(steps):
        new = u.clone()
        new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u = new
    return u


@pytest.mark.parametrize("loop", [life, wave, trained_wave, heat])
def test_stencils_compiled_as_in_torch(loop):
    with tier("compiled"):
        found = loop(torchlike, 5).numpy()
    np.testing.assert_allclose(found, loop(torch, 5).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loop", [life, wave, trained_wave])
def test_twice_as_many_steps_are_twice_the_work(loop):
    """XLA would compute each step's values again in all that follow."""
    work = []
    for steps in (6, 12):
        before = len(executor.infos)
        with tier("compiled"):
            loop(torchlike, steps).numpy()
        exe, = [e for info in executor.infos[before:] for e in info.executables if len(info.steps) > steps]
        work.append(exe.call.cost_analysis()["flops"])
    assert work[1] < 2.5 * work[0]


@pytest.mark.parametrize("shifts, dims", [((1,), (0,)), ((-2, 3), (0, 1)), ((5,), None), ((0, 7), (1, 0))])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
def test_rolls_compiled(shifts, dims, dtype):
    def rolled(torch):
        x = (torch.arange(24).view(4, 6) % 5).to(getattr(torch, dtype))
        return torch.roll(x, shifts, dims), torch.roll(x[:0], 1, 0)
    with tier("compiled"):
        found = [x.numpy() for x in rolled(torchlike)]
    for a, b in zip(found, rolled(torch)):
        np.testing.assert_array_equal(a, b.numpy())
