"""What CUDA graphs are built on, on the CPU: a region captured once and replayed, against torch running the region each time."""
from types import SimpleNamespace

import numpy as np
import pytest
import torch as oracle

import torchlike as subject
from torchlike._captured import Captured


def captured(torch, work):
    """Something whose `replay` does the work; for real torch the work itself."""
    if torch is oracle:
        return SimpleNamespace(replay=work)
    region = Captured()
    region.begin()
    work()
    region.end()
    return region


def inference(torch):
    torch.manual_seed(0)
    model, x = torch.nn.Linear(3, 2), torch.zeros(4, 3)
    out = torch.zeros(4, 2)

    def work():
        with torch.no_grad():
            out.copy_(model(x).relu() * 2)
    region = captured(torch, work)
    found = []
    for k in range(3):
        x.copy_(torch.arange(12.0).view(4, 3) * k)
        region.replay()
        found.append(out.tolist())
    return found


def test_a_kept_view_of_what_vmap_lost():
    """It is in nobody's way."""
    kept = []

    def one(x):
        kept.append(x[:1])
        return x.mul_(3)
    subject.vmap(one)(subject.ones(3, 4))
    assert inference(subject) == inference(subject)


def training(optimizer):
    def program(torch):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4, bias=False), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        x, y = torch.arange(15.0).view(5, 3).cos(), torch.ones(5, 1)
        optim, loss = optimizer(torch, model.parameters()), torch.zeros(())

        def work():
            optim.zero_grad()
            value = torch.nn.functional.mse_loss(model(x), y)
            value.backward()
            optim.step()
            loss.copy_(value.detach())
        work()  # the states exist before the capture, as CUDA graphs want it
        region = captured(torch, work)
        found = []
        for k in range(4):
            x.copy_(torch.arange(15.0).view(5, 3).sin() * (k + 1))
            y.copy_(x.sum(1, keepdim=True))
            region.replay()
            found.append(loss.item())
        return found, [p.tolist() for p in model.state_dict().values()], model[0].weight.grad.tolist()
    return program


def views(torch):
    """Reads and writes through views that were there before, and a view made inside."""
    base = torch.zeros(6)
    row = base[:3]

    def work():
        row.add_(1)
        base.view(2, 3)[1] += row * 2
    region = captured(torch, work)
    region.replay()
    base[0] = 10
    region.replay()
    return base.tolist(), row.tolist()


def shared_values(torch):
    """`static.copy_(x)` shares a Value here: the capture reads static, not x."""
    x, static, out = torch.ones(3), torch.zeros(3), torch.zeros(3)
    static.copy_(x)
    region = captured(torch, lambda: out.copy_(static * 3))
    static.copy_(torch.full((3,), 5.0))
    region.replay()
    first = out.tolist()
    x.fill_(7)
    region.replay()
    return first, out.tolist(), x.tolist()


def scheduled(torch):
    """A learning rate that changes after the capture changes nothing: torch's captured kernels hold the number."""
    w = torch.nn.Parameter(torch.ones(2))
    w.grad = torch.ones(2)
    optim = torch.optim.SGD([w], lr=0.5)
    rate = optim.param_groups[0]

    def work():
        now, rate["lr"] = rate["lr"], 0.5
        optim.step()
        rate["lr"] = now
    region = captured(torch, work)
    rate["lr"] = 100.0
    region.replay()
    region.replay()
    return w.tolist(), rate["lr"]


@pytest.mark.parametrize("program", [
    inference, training(lambda torch, p: torch.optim.SGD(p, lr=0.1, momentum=0.9)), training(lambda torch, p: torch.optim.Adam(p, lr=0.1)),
    training(lambda torch, p: torch.optim.AdamW(p, lr=0.1, amsgrad=True)), views, shared_values, scheduled])
def test_as_run_each_time(program):
    def flat(x):
        return np.concatenate([flat(y) for y in x]) if isinstance(x, (list, tuple)) else np.array([x])
    np.testing.assert_allclose(flat(program(subject)), flat(program(oracle)), rtol=1e-4, atol=1e-5)


def test_nothing_runs_inside():
    w = subject.nn.Parameter(subject.ones(2))
    optim = subject.optim.Adam([w], lr=0.1)
    (w * w).sum().backward()
    optim.step()
    before, steps = w.tolist(), optim.state[w]["step"].item()
    region = Captured()
    region.begin()
    assert Captured.running()
    optim.step()
    made = w.detach() * 2
    region.end()
    assert not Captured.running()
    assert (w.tolist(), optim.state[w]["step"].item(), made.tolist()) == (before, steps, [0, 0])
    region.replay()
    assert optim.state[w]["step"].item() == steps + 1 and w.tolist() != before and made.tolist() == [2 * x for x in w.tolist()]


def test_new_numbers_at_each_replay():
    out = subject.zeros(4)
    region = Captured()
    region.begin()
    out.copy_(subject.rand(4))
    region.end()
    seen = set()
    for _ in range(3):
        region.replay()
        seen.add(tuple(out.tolist()))
    assert len(seen) == 3


def test_refusals():
    x, region = subject.ones(2), Captured()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        region.replay()
    region.begin()
    with pytest.raises(RuntimeError, match="not permitted"):
        (x + 1).sum().item()
    region.end()
    with pytest.raises(RuntimeError, match="already owns"):
        region.begin()
    region.reset()
    region.begin()
    region.end()
    assert (x + 1).tolist() == [2, 2]


def test_cuda_graph(monkeypatch):
    """The public classes, as on a machine with a GPU."""
    from torchlike.cuda import graphs
    monkeypatch.setattr(graphs, "need", lambda *error: None)
    monkeypatch.setattr(graphs, "synchronize", lambda: None)
    x, g = subject.ones(3), subject.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.pool()
    with subject.cuda.graph(g, pool=subject.cuda.graph_pool_handle(), stream=object()):
        assert subject.cuda.is_current_stream_capturing()
        y = x * 2
    assert not subject.cuda.is_current_stream_capturing() and g.pool()[1] > 0
    g.replay()
    assert y.tolist() == [2, 2, 2]
    x.fill_(4)
    g.replay()
    assert y.tolist() == [8, 8, 8]
    with pytest.raises(RuntimeError, match="already owns"):
        g.capture_begin()


def test_values_are_hidden_while_work_is_captured():
    x, i = subject.arange(4.0), subject.tensor(2)
    out = subject.zeros(4)
    region = Captured()
    region.begin()
    with pytest.raises(RuntimeError, match="operation not permitted while work is captured"):
        out.copy_(x * i.item())
    region.end()
    assert (i.item(), x.tolist()) == (2, [0, 1, 2, 3])


@pytest.mark.parametrize("shift", [0, 1])
def test_replays_check_positions(shift):
    """Of what is given, and of what is computed."""
    table, i, out = subject.arange(4.0), subject.tensor([2, 0]), subject.zeros(2)
    region = captured(subject, lambda: out.copy_(table[i + shift if shift else i]))
    region.replay()
    assert out.tolist() == [2 + shift, shift]
    i.copy_(subject.tensor([1, 7]))
    with pytest.raises(IndexError, match=f"index {7 + shift} is out of bounds for dimension 0 with size 4"):
        region.replay()
        out.tolist()
