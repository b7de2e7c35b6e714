"""Loops of stencils, compiled: the same numbers as real torch, and each step's values computed once."""
from __future__ import annotations

import jax
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import flow, program, program_info, stencils
from torchlike._core.program import tier
from torchlike._core.registry import OPS


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


def heat_in_place(torch, steps):
    u = torch.linspace(0, 3, 64 * 64).view(64, 64).sin()
    for k in range(steps):
        u[1:-1] = 0.5 * (u[2:] + u[:-2]) if k % 2 else u[1:-1, [*range(64)]] + u[:-2]
    return u


def trained_windows(torch, steps):
    """A stream to which every block adds what it makes of windows of it, and of it as it is."""
    F = torch.nn.functional
    stream = torch.linspace(0, 3, 4 * 8 * 8 * 64, dtype=torch.float64).view(4, 8, 8, 64).sin().requires_grad_()
    weights = [torch.eye(64, dtype=torch.float64).roll(k, 0).requires_grad_() for k in range(2 * steps)]
    kept = torch.tensor([1.25, 0.0, 1.25, 1.25], dtype=torch.float64)[:, None, None, None]
    for w, v in zip(weights[::2], weights[1::2]):
        windows = torch.roll(F.layer_norm(stream, (64,)), (-2, -2), (1, 2)).view(4, 2, 4, 2, 4, 64).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 64)
        made = F.linear(windows, w).view(4, 2, 2, 4, 4, 64).permute(0, 1, 3, 2, 4, 5).reshape(4, 8, 8, 64)
        stream = stream + kept * torch.roll(made, (2, 2), (1, 2))
        stream = stream + kept * F.linear(F.layer_norm(stream, (64,)), v).relu()
    stream.square().mean().backward()
    return torch.stack([w.grad for w in weights])


@pytest.mark.parametrize("loop", [life, wave, trained_wave, heat, heat_in_place, trained_windows])
def test_stencils_compiled_as_in_torch(loop):
    with tier("compiled"):
        found = loop(torchlike, 5).numpy()
    np.testing.assert_allclose(found, loop(torch, 5).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loop", [life, wave, trained_wave, trained_windows])
def test_twice_as_many_steps_are_twice_the_work(loop):
    """XLA would compute each step's values again in all that follow."""
    work = []
    for steps in (4, 8):
        before = len(program_info.infos)
        with tier("compiled"):
            loop(torchlike, steps).numpy()
        exe, = [e for info in program_info.infos[before:] for e in info.executables if len(info.steps) > steps]
        work.append(exe.call.cost_analysis()["flops"])
    assert work[1] < 2.5 * work[0]


@pytest.mark.parametrize("loop", [heat, heat_in_place])
def test_steps_written_into_large_tensors(monkeypatch, loop):
    """What is computed from windows of the tensor that it is written into needs no array for each window."""
    memory, flops = [], []
    for least in (1 << 40, 1) if loop is heat else (1,):
        monkeypatch.setattr(stencils, "BIG", least)
        for steps in (4, 8):
            before = len(program_info.infos)
            with tier("compiled"):
                found = loop(torchlike, steps).numpy().copy()
            np.testing.assert_allclose(found, loop(torch, steps).numpy(), rtol=1e-5, atol=1e-6)
            exe, = [e for info in program_info.infos[before:] for e in info.executables if len(info.steps) > steps]
            memory.append(exe.call.memory_analysis().temp_size_in_bytes)
            flops.append(exe.call.cost_analysis()["flops"])
            program.forget_programs()
    if loop is heat:
        assert memory[3] < memory[1] / 2
    assert flops[-1] < 2.5 * flops[-2]


def test_streams_are_arrays_at_every_block():
    """XLA may compute a value of many arrays for each reader, as it does in Swin's backward. What one reader takes, or a product as it is, stays."""
    def found(loop, steps):
        with tier("numpy"):
            for _ in range(3):
                loop(torchlike, steps).numpy()
        info = max(program_info.infos, key=lambda info: info.last_seen)
        calls, results = flow.calls(info.steps)
        return len(stencils._of_long_chains(calls, [results[i] for i in info.lives]))

    def one_reader(torch, steps):
        return sum(torch.arange(1 << 15) * k for k in range(10, 10 + steps)) * 2

    def products(torch, steps):
        x, w = torch.ones(512, 64), torch.eye(64)
        for k in range(steps):
            x = x + torch.relu(x @ w) * k
        return x
    assert 6 <= found(trained_windows, 6) < found(trained_windows, 12) < 48
    assert found(one_reader, 20) == found(products, 20) == 0


@pytest.mark.parametrize("shifts, dims", [((1,), (0,)), ((-2, 3), (0, 1)), ((5,), None), ((0, 7), (1, 0))])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
def test_rolls_compiled(shifts, dims, dtype):
    def rolled(torch):
        x = (torch.arange(24).view(4, 6) % 5).to(getattr(torch, dtype))
        wide = torch.arange(4 * 6 * 40).view(4, 6, 40).to(x.dtype)  # slices of 40 elements are copied
        return torch.roll(x, shifts, dims), torch.roll(x[:0], 1, 0), torch.roll(wide, shifts, dims), torch.roll(wide, (2, -1, 3), (1, 0, 1)), torch.roll(wide[:0], 1, 0)
    with tier("compiled"):
        found = [x.numpy() for x in rolled(torchlike)]
    for a, b in zip(found, rolled(torch)):
        np.testing.assert_array_equal(a, b.numpy())


def test_a_roll_copies_slices():
    """All dimensions at once; joined parts would be copied once for each of them."""
    x = torchlike.zeros(2, 8, 8, 32)
    plan = OPS["roll"].plan((x._value.aval,), ((1, 2), (1, 2)))
    with jax.enable_x64(True):
        text = jax.jit(plan.compiled).lower(x.numpy()).as_text()
    assert "gather" in text and "concatenate" not in text


def dense(torch, layers):
    """The gradients of a block of DenseNet: each layer normalizes the results of all before it, joined."""
    torch.manual_seed(0)
    nn = torch.nn
    x = torch.randn(2, 8, 16, 16).requires_grad_()
    blocks = [nn.Sequential(nn.BatchNorm2d(8 * (k + 1)), nn.ReLU(), nn.Conv2d(8 * (k + 1), 8, 1)) for k in range(layers)]
    features = [x]
    for block in blocks:
        features.append(block(torch.cat(features, 1)))
    torch.cat(features, 1).square().sum().backward()
    return torch.stack([x.grad.sum(), *[b[0].weight.grad.sum() for b in blocks], *[b[2].weight.grad.square().sum() for b in blocks]])


def test_gradients_of_joined_layers_are_arrays():
    code = []
    for layers in (8, 16):
        before = len(program_info.infos)
        with tier("compiled"):
            found = dense(torchlike, layers).numpy()
        np.testing.assert_allclose(found, dense(torch, layers).numpy(), rtol=1e-3, atol=1e-3)
        exe, = [e for info in program_info.infos[before:] for e in info.executables if len(info.steps) > 4 * layers]
        code.append(len(exe.call.as_text().splitlines()))
    assert code[1] < 2.2 * code[0]  # 2.4 where each piece is computed as it is read
