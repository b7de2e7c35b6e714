"""What a compiled training step computes twice: the same numbers as once, in less memory."""
from __future__ import annotations

import contextlib
import re
from unittest import mock

import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import costs, executable, executor, flow, history, program_info, rematerialization
from torchlike._core.program import tier

ROWS, WIDTH, LAYERS = 512, 128, 3


def network(torch):
    """Blocks of a transformer: norms, attention, GELU; with dropout's places left out."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(WIDTH), nn.RMSNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            q, k, v = (y.view(8, 64, 4, -1).transpose(1, 2) for y in self.qkv(self.first(x)).split(WIDTH, dim=1))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(ROWS, WIDTH))
            return x + self.down(nn.functional.gelu(self.up(self.second(x))))
    torch.manual_seed(0)
    return nn.Sequential(*[Block() for _ in range(LAYERS)], nn.SiLU(), nn.Linear(WIDTH, 10))


def training(torch, steps: int = 3, compiled: bool = False):
    """Losses and the gradients of the last step."""
    model = network(torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(ROWS, WIDTH), torch.randint(0, 10, (ROWS,))

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    if compiled:
        step = torch.compile(step)
    losses = [step().item() for _ in range(steps)]
    return losses, [p.grad.numpy() for p in model.parameters()], [p.detach().numpy() for p in model.parameters()]


def trained(compiled: bool = False):
    """What training gives, and the program of its steps: its calls, inside of traced calls as well, and its results."""
    # the tier runs what is still pending of the test before; executables are let go where a process nears Linux's limit of mappings
    with tier("compiled"), mock.patch.object(executor.mappings, "are_half_used", bool):
        start = program_info.clock.now
        made = training(torchlike, 4, compiled)
    found = [(info, *flow.calls(info.steps)) for info in program_info.infos
             if info.last_seen > start and info.executables and any(s.plan.op.inlined for s in info.steps) == compiled]
    return made, *max(found, key=lambda one: len(one[1]))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.usefixtures("recorded")
def test_training_step(compiled):
    ours, info, calls, results = trained(compiled)
    wanted = {results[i] for i in info.executables[-1].live}
    twice = rematerialization.rematerialized(calls, wanted, info.input_avals)
    names = [call.plan.op.name for call in twice]
    # the last block's backward begins with its GELU, which is kept
    assert names.count("gelu") == 2 * LAYERS - 1 and names.count("native_layer_norm") == 2 * LAYERS and names.count("rms_norm") == 2 * LAYERS
    first, more = ([call.plan for call in some if call.plan.op.name == "linear"] for some in (calls, twice))
    assert len(first) < len(more)  # what takes long is computed once, but for a small part
    assert sum(map(costs.multiply_adds, more)) - sum(map(costs.multiply_adds, first)) <= rematerialization.SPARE * sum(costs.multiply_adds(c.plan) for c in calls)
    theirs = training(torch, 4)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-5)
    for a, b in zip(ours[1] + ours[2], theirs[1] + theirs[2]):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-5)


@pytest.mark.usefixtures("recorded")
def test_large_programs_repeat_no_products(monkeypatch):
    _, info, calls, results = trained()
    monkeypatch.setattr(rematerialization, "COMPACT", 0)
    twice = rematerialization.rematerialized(calls, {results[i] for i in info.executables[-1].live}, info.input_avals)
    assert len(twice) > len(calls)
    assert sum(call.plan.op.name == "linear" for call in twice) == sum(call.plan.op.name == "linear" for call in calls)


@pytest.mark.usefixtures("recorded")
def test_takes_less_memory(monkeypatch):
    _, info, *_ = trained()
    exe = info.executables[-1]

    def temporaries():
        return executable.build(info, exe.live, exe.donated).call.memory_analysis().temp_size_in_bytes
    less = temporaries()
    monkeypatch.setattr(executable, "rematerialized", lambda calls, live, inputs: calls)
    assert less < 0.75 * temporaries()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int8", "bool"])
def test_told_apart(dtype):
    """The product with one changes no number's bits; what XLA takes for zero, a subnormal float32, becomes one."""
    import jax
    kind = getattr(torchlike, dtype)
    x = torchlike.tensor([0.0, -0.0, 1.5, float("inf"), -float("inf"), float("nan"), 1.2e-38, 3e-41]).to(kind) if kind.is_floating_point else torchlike.tensor([0, 1, -7]).to(kind)
    with jax.enable_x64(True):
        array = x.jax()
        plan = rematerialization.APART.plan((x._aval, torchlike.tensor(1.0)._aval), ())
        out, = jax.jit(plan.jax)(array, np.float32(1))
    expected = np.array(array)
    if dtype == "float32":
        expected[-1] = 0
    assert out.dtype == array.dtype and np.asarray(out).tobytes() == expected.tobytes()


OPTIMIZERS = {"SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}, "Adam": {"lr": 0.01, "amsgrad": True}, "AdamW": {"lr": 0.01},
              "RMSprop": {"lr": 0.01, "centered": True}, "Adagrad": {"lr": 0.1},
              "Adadelta": {}, "Adamax": {}, "NAdam": {}, "RAdam": {}, "ASGD": {}, "Rprop": {}}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_of_all_sizes(name):
    def run(torch, how):
        torch.manual_seed(1)
        params = [torch.nn.Parameter(torch.randn(shape)) for shape in [(3,), (2, 5), (), (7,), (64, 80), (1, 1), (4,), (2, 2, 2), (9,), (5,), (6,)]]
        optimizer = getattr(torch.optim, name)(params, **OPTIMIZERS[name])
        with how:
            for k in range(3):
                optimizer.zero_grad()
                sum((p * p + (k * p).sin()).sum() for p in params).backward()  # gradients with small slopes: rounding stays rounding
                optimizer.step()
            return [p.detach().numpy() for p in params]
    for a, b in zip(run(torchlike, tier("compiled")), run(torch, contextlib.nullcontext())):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.usefixtures("recorded")
def test_layers_that_are_alike_have_kernels_that_are():
    """XLA compiles those once: a deeper network has no more of them to compile."""
    def kernels(layers):
        model = torchlike.nn.Sequential(*[torchlike.nn.Sequential(torchlike.nn.Linear(8, 8), torchlike.nn.LayerNorm(8), torchlike.nn.LeakyReLU(0.1))
                                          for _ in range(layers)])
        optimizer = torchlike.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            model(torchlike.randn(3, 8)).sum().backward()
            optimizer.step()
            model[0][0].weight.sum().item()
        info = next(e.info for e in reversed(history.entries) if len(e.info.steps) > layers)
        text = info.executables[0].call.as_text()
        bodies = re.findall(r"^%fused_computation[^\n]*\{\n(.*?)^\}", text, re.M | re.S)
        return {re.sub(r"%[\w.-]+|, metadata=\{[^}]*\}", "", body) for body in bodies}
    with tier("compiled"):
        assert len(kernels(12)) <= len(kernels(6)) > 5
