"""Large programs that do not return run in parts of which some do: see _core/parts.py."""
import numpy as np
import pytest
import torch as real

import torchlike
from torchlike._core import executor, history, parts, program, program_info
from torchlike._core.registry import Op
from torchlike._tensor import apply

pytestmark = pytest.mark.usefixtures("recorded")
WIDTH, ROWS = 48, 64


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    program.flush()
    program.forget_programs()
    monkeypatch.setattr(executor, "HEAVY_WORK", 1e4)


def detector(torch, steps, each=lambda k: None):
    """A network whose loss is taken of as many rows as chance will have, after targets whose number is another each time."""
    torch.manual_seed(0)
    chance = np.random.default_rng(0)
    net = torch.nn.Sequential(*[m for _ in range(4) for m in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    losses = []
    for k in range(steps):
        x = torch.from_numpy(chance.standard_normal((ROWS, WIDTH)).astype("float32"))
        boxes = torch.cat([torch.full((int(n), 4), 0.5) * 2 for n in chance.integers(1, 40, 3)])
        out = net(x / 2)
        picked = out[torch.from_numpy(chance.random(ROWS) < chance.uniform(0.3, 0.9)) & (out.detach()[:, 0] < 2)]
        loss = (picked ** 2).mean() + (boxes.sum() / boxes.numel() - picked.mean()).abs()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        each(k)
    return losses, [p.detach().numpy() for p in net.parameters()]


def agree(ours, theirs, rtol=2e-4):
    np.testing.assert_allclose(ours[0], theirs[0], rtol=rtol)
    for a, b in zip(ours[1], theirs[1]):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=2e-5)


def test_parts_return():
    """Each step's whole program is new, but those of its network's forward and of its backward are not."""
    before = len(program_info.infos)
    made = detector(torchlike, 24)
    agree(made, detector(real, 24))
    returned = [info for info in program_info.infos[before:] if info.seen >= 12 and info.work >= executor.HEAVY_WORK]
    names = [{s.plan.op.name for s in info.steps} for info in returned]
    assert any("linear" in n and "full" not in n for n in names), names
    assert any("linear_backward" in n and "index_backward" not in n for n in names), names


def test_the_same_numbers_as_whole(monkeypatch):
    made = detector(torchlike, 16)
    monkeypatch.setattr(parts, "divided", lambda *_: None)
    whole = detector(torchlike, 16)
    assert made[0] == whole[0]
    for a, b in zip(made[1], whole[1]):
        np.testing.assert_array_equal(a, b)


def test_parts_are_compiled(monkeypatch):
    monkeypatch.setattr(executor.costs, "gain", lambda *_: 1.0)  # whatever returns is worth it
    before = len(history.compilations)
    made = detector(torchlike, 24)
    assert len(history.compilations) > before
    compiled = [(info, exe) for info in program_info.infos if info.work >= executor.HEAVY_WORK for exe in info.executables]
    assert compiled and all(len(exe.live) < info.n_results for info, exe in compiled)
    backward, exe = next(one for one in compiled if any(s.plan.op.name == "linear_backward" for s in one[0].steps))
    assert len(exe.live) == 16 and len(exe.donated) == 8  # gradients and parameters, which take over the old ones' memory
    agree(made, detector(real, 24))


def rolled(torch, lengths, wrap):
    """Training on sequences of many lengths by a cell that is called once a step."""
    torch.manual_seed(0)
    chance = np.random.default_rng(0)
    cell = torch.nn.GRUCell(4, 8)
    call = wrap(lambda x, h: cell(x, h).tanh())
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    losses = []
    for n in lengths:
        x, h = torch.from_numpy(chance.standard_normal((n, 3, 4)).astype("float32")), torch.zeros(3, 8)
        for k in range(n):
            h = call(x[k], h)
        loss = (h - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().numpy() for p in cell.parameters()]


def test_calls_of_a_compiled_function_are_compiled_once(monkeypatch):
    """However many a program has; it is compiled as a whole once that has paid."""
    def calls_in_executables(lengths):
        start = program_info.clock.now
        agree(rolled(torchlike, lengths, torchlike.compile), rolled(real, lengths, lambda f: f))
        return {sum(s.plan.op.eager_compilation for s in info.steps) for info in program_info.infos if info.last_seen > start and info.executables}
    assert calls_in_executables([*range(8, 14)] * 2) <= {0, 1}
    monkeypatch.setattr(executor, "LASTS", 1e9)
    if program.state.limit:  # not operation by operation
        assert max(calls_in_executables([8] * 12)) > 8


def test_loops_that_return_stay_whole():
    """A step that is the same each time is one program, also where it is not compiled yet."""
    runs = []
    net = torchlike.nn.Sequential(*[torchlike.nn.Linear(WIDTH, WIDTH) for _ in range(3)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "run", lambda *a: runs.append(a))
        patch.setattr(executor, "LASTS", 0)
        for _ in range(20):
            net.zero_grad()
            net(torchlike.ones(ROWS, WIDTH)).sum().backward()
            assert net[0].weight.grad.isfinite().all()
    assert not runs


def test_forced_tiers_stay_whole(monkeypatch):
    monkeypatch.setattr(parts, "divided", lambda *_: pytest.fail("divided"))
    with program.tier("numpy"):
        detector(torchlike, 3)


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_what_fails_reaches_what_depends_on_it(where):
    """An operation that raises in one part: results of the others are there."""
    def kernel(xp, x, bad):
        if bad:
            raise ValueError("it fails")
        return x + 1
    op = Op(f"fails_in_the_{where}_part", kernel, shape=lambda a, bad: (a.shape, a.dtype), vjp=False)
    failing = lambda x, bad: apply(op, (x,), (bad,))  # noqa: E731
    a, b = torchlike.ones(ROWS, WIDTH), torchlike.ones(ROWS, WIDTH) / 2
    a.tolist(), b.tolist()
    for k in range(parts.STEADY + 4):
        bad = k == parts.STEADY + 3
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(executor, "LASTS", 0)
            first = (a @ b.T).tanh()
            other = b.exp() * 3
            if where == "first":
                other = failing(other, bad) * 2
            odd = torchlike.full((k + 3, ROWS), 1.5) @ first
            if where == "middle":
                odd = failing(odd, bad) * 2
            last = (odd.sum() + first).cos() @ first
            if where == "last":
                last = failing(last, bad) * 2
            made = {"first": other.sum(), "middle": odd.sum(), "last": last.sum()}
            if not bad:
                assert all(np.isfinite(t.item()) for t in made.values())
    with pytest.raises(ValueError, match="it fails"):
        made[where].item()
    np.testing.assert_allclose(first[0, 0].item(), np.tanh(WIDTH / 2), rtol=1e-6)
    for name in {"first": ("middle", "last"), "middle": ("first",), "last": ("first", "middle")}[where]:
        assert np.isfinite(made[name].item())
    assert (torchlike.ones(2) + 1).tolist() == [2, 2]


def test_interrupted(monkeypatch):
    """Ctrl-C between two parts waits: all parts run, and nothing is lost."""
    import signal
    ran = parts.run
    arrived = []

    def interrupting(prog, divided, execute):
        def stopping(piece):
            if not arrived:
                arrived.append(True)
                signal.raise_signal(signal.SIGINT)
            execute(piece)
        ran(prog, divided, stopping)
    want = detector(torchlike, 12)
    monkeypatch.setattr(parts, "run", interrupting)
    made: list = []

    def loop():
        made.append(detector(torchlike, 12))
    with pytest.raises(KeyboardInterrupt):
        loop()
    assert arrived and not made
    loop()
    assert made[0][0] == want[0]
