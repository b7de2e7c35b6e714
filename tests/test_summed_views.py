"""Gradients of many small views of one tensor, as a loop over time has them, are added to the parts that they show (View.adds): the same as torch's."""
import numpy as np
import pytest
import torch as real
from same import same

import torchlike
from torchlike._core import executor, program_info

T = 40  # steps of 4 * 32 elements


def elements(torch, kind, seed=0):
    x = torch.tensor(np.random.RandomState(seed).randn(4, T, 32), dtype=torch.float64).to(kind)
    return x.requires_grad_()


def scan(torch, x, y):
    state, made = torch.zeros(4, 32, dtype=x.dtype), []
    for i in range(T):
        state = torch.tanh(x[:, i] * state + y[:, i])
        made.append(state)
    return torch.stack(made, 1).sum() + made[-1].abs().sum()


PROGRAMS = {
    "scan": scan,
    "slices": lambda torch, x, y: sum((x[:, i:i + 2] * y.narrow(1, i, 2)).sin().sum() for i in range(0, T, 2)),
    "overlapping": lambda torch, x, y: sum((x[:, i:i + 2] ** 2 * y[:, i + 1:i + 3]).sum() for i in range(T - 3)),
    "steps": lambda torch, x, y: sum((x[1:3, i::20] * y[-1, i]).sum() for i in range(20)),
    "also whole": lambda torch, x, y: (x * y).sum() + sum((x[:, i] * i).sum() for i in range(T)) + x.exp().sum(),
    "positions that are data": lambda torch, x, y: sum((x.select(1, int(i)) * y[:, i]).sum() for i in torch.arange(T).flip(0)[:30]),
    "views of views": lambda torch, x, y: sum((x.transpose(0, 1)[i] * y.flatten(0, 1)[i]).sum() for i in range(T)),
    "elements": lambda torch, x, y: sum(x[i % 4, i, 3] * y[3, i, i % 32] for i in range(T)),
}
ENDINGS = {
    "backward": lambda torch, loss, x, y: loss.backward(),
    "twice": lambda torch, loss, x, y: (loss.backward(retain_graph=True), loss.backward()),
    "grad": lambda torch, loss, x, y: setattr(x, "grad", torch.autograd.grad(loss, x)[0]),
    "with a graph": lambda torch, loss, x, y: sum((g ** 2).sum() for g in torch.autograd.grad(loss, [x, y], create_graph=True)).backward(),
    "into sums": lambda torch, loss, x, y: (loss.backward(retain_graph=True), (loss * 2).backward(inputs=[x])),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name, ending):
    def run(torch):
        found = []
        x, y = elements(torch, torch.float64), elements(torch, torch.float64, 1)
        for _ in range(4):  # node by node, and recorded at once
            ENDINGS[ending](torch, PROGRAMS[name](torch, x, y), x, y)
            found += [None if t.grad is None else t.grad.numpy().copy() for t in (x, y)]
        return found
    for ours, theirs in zip(run(torchlike), run(real), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16", "complex64"])
@same
def test_dtypes(torch, kind):
    x = torch.arange(4 * T * 32).remainder(7).sub(3).to(getattr(torch, kind)).view(4, T, 32).requires_grad_()
    sum((x[:, i] * (i % 3)).abs().sum() for i in range(T)).backward()
    return x.grad


@same
def test_hooks(torch):
    x, seen = elements(torch, torch.float64), []
    x.register_hook(lambda g: seen.append(g.sum()) or g * 2)
    y = x * 3
    y.retain_grad()
    parts = [y[:, i] for i in range(T)]
    parts[3].register_hook(lambda g: g * 10)
    parts[5].grad_fn.register_hook(lambda made, given: (made[0] * 5,))
    sum((p * i).sum() for i, p in enumerate(parts)).backward()
    return x.grad, y.grad, seen


def recorded(loss_of) -> list[str]:
    """Names of the operations of a loss and its backward."""
    with torchlike.immediate(False), executor.tier("numpy"):
        torchlike.zeros(1).add(1).item()
        before = len(program_info.infos)
        x = elements(torchlike, torchlike.float64)
        loss = loss_of(x)
        loss.backward()
        assert x.grad.isfinite().all()
        return [s.plan.op.name for info in program_info.infos[before:] for s in info.steps]


def test_are_recorded_as_sums():
    ran = [names for _ in range(4) if (names := recorded(lambda x: scan(torchlike, x, x)))]  # node by node, then at once; none where a program returns
    assert ran
    for names in ran:
        assert sum("plus" in name for name in names) >= 2 * T - 1 and sum(name.endswith("select_backward") for name in names) <= 1, names


def test_few_and_small_views_are_not():
    assert not any("plus" in name for name in recorded(lambda x: x[:, :10].sum() + x[:, 5:30].exp().sum()))
    assert not any("plus" in name for name in recorded(lambda x: sum(part[:, i].sum() for part in [x[:, :10, :16]] for i in range(10))))
