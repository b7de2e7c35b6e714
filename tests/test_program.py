"""The recorder: modes agree, programs compile when they return, nothing is lost by errors, explain() tells."""
from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
from unittest import mock

import jax
import numpy as np
import pytest

import torchlike as torch
from torchlike._core import disk_cache, executor, history, host, mappings, program, program_info, runs, trie
from torchlike._core.numbers import PATIENCE, Numbers
from torchlike._core.registry import OPS
from torchlike._core.silence import silently
from torchlike.ops import norms

recorded = pytest.mark.usefixtures("recorded")


def train(steps: int = 6):
    torch.manual_seed(0)
    w = torch.randn(4, 4, requires_grad=True)
    for _ in range(steps):
        loss = (torch.ones(2, 4) @ w).tanh().pow(2).sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
    return w.detach().numpy().copy()


def test_modes_and_tiers_agree():
    want = train()
    with torch.immediate():
        np.testing.assert_allclose(train(), want, rtol=1e-5)
    for tier in ("numpy", "compiled"):
        with program.tier(tier):
            np.testing.assert_allclose(train(), want, rtol=1e-5)


@recorded
@pytest.mark.usefixtures("recorded")
def test_a_loop_is_compiled_once_and_changing_numbers_do_not_recompile():
    x = torch.arange(12.0).repeat(400_000)  # small programs stay in NumPy
    before = len(history.compilations)
    got = [(x * (0.5 + k)).cos().mean().item() for k in range(24)]
    assert len(history.compilations) == before + 1
    np.testing.assert_allclose(got, [np.cos(np.arange(12.0, dtype=np.float32) * np.float32(0.5 + k)).mean() for k in range(24)], rtol=1e-4, atol=1e-5)


@recorded
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.usefixtures("recorded")
def test_numbers_that_only_float32_reads_are_float32(dtype):
    """An optimizer's numbers, which each parameter's kernel would convert; not those of other operations, and none of them where it computes in other types."""
    def steps():
        p = torch.nn.Parameter(torch.linspace(-1, 1, 6, dtype=getattr(torch, dtype)))
        opt = torch.optim.AdamW([p], lr=0.1)
        for k in range(4):
            opt.param_groups[0]["lr"] = 0.1 / (k + 1) if k < 3 else 1e300  # of single precision it is infinite
            (p * (0.3 + k)).square().sum().backward()
            opt.step()
            opt.zero_grad()
        return p.float().tolist()
    with program.tier("numpy"):
        want = steps()
    history.entries.clear()
    with program.tier("compiled"):
        got = steps()
    np.testing.assert_allclose(got, want, rtol=1e-5 if dtype != "bfloat16" else 1e-2)
    info, *others = {e.info for e in history.entries if e.info is not None and any("optim_adam" in repr(s.plan) for s in e.info.steps)}
    assert [e.numbers.types for e in info.executables] == ["dd" + 8 * ("f" if dtype == "float32" else "d")] and not others


def test_numbers_that_come_again_and_again_are_moved_to_the_device():
    """And none that is now and then what it was: JAX starts a program slowly where its arguments are of other kinds than before."""
    taken = Numbers("dfq")

    def on_device():
        with jax.enable_x64(True):
            taken.move(jax.devices("cpu")[0])
        return [isinstance(x, jax.Array) for x in taken.items]
    for k in range(3 * PATIENCE):
        taken.take([0.5, k // 3], [k])
        assert on_device() == [k >= PATIENCE, False, False]
        assert [x.dtype for x in taken.items] == ["float64", "float32", "int64"] and [float(x) for x in taken.items] == [0.5, k // 3, k]
    for _ in range(PATIENCE + 1):
        assert not all(on_device()) and not taken.take([0.5, 1e300], [7])
    assert all(on_device()) and taken.take([0.5, 1e300], [7]) and np.isinf(taken.items[1])


@recorded
@pytest.mark.usefixtures("recorded")
def test_the_first_step_is_the_same_program_as_the_others():
    model = torch.nn.Linear(4, 3)
    torch.nn.init.normal_(model.weight, 1.0, 0.5).data.mul_(2)
    opt = torch.optim.Adam(model.parameters())
    history.entries.clear()
    for _ in range(3):
        opt.zero_grad()
        model(torch.ones(2, 4)).square().sum().backward()
        opt.step()
        model.weight.sum().item()
    made, *steps = [(e.reason, e.info) for e in history.entries if e.reason.startswith(("optimizer", "end of optimizer"))]
    programs = [[(s.plan, s.refs) for s in info.steps] for _, info in steps]
    assert made[0] == "optimizer made" and len(steps) == 3 and programs[0] == programs[1] == programs[2]
    assert steps[1][1] is steps[2][1]  # the first one was let go


@recorded
@pytest.mark.usefixtures("recorded")
def test_a_program_that_passes_leaves_nothing_behind():
    """It is known again nevertheless when it returns, and counts as seen then."""
    def work(n):
        y = torch.ones(n, requires_grad=True)
        for k in range(n % 7 + 3):
            y = torch.sin(y * k)
        y.sum().backward()
        return y.sum().item()
    work(50)
    before, infos = program.trie.size, len(program_info.infos)
    history.entries.clear()
    for n in range(100, 120):
        work(n)
    assert program.trie.size == before and len(program_info.infos) == infos
    assert [e.how for e in history.entries] == ["numpy"] * 20 and "sin" in repr(history.entries[0].info.steps[2].plan)
    assert str(torch.explain(3)).count("test_program.py") >= 1
    work(119)
    info = history.entries[-1].info
    assert info.seen == 2 and info.near > 1 and program.trie.size > before
    work(119)
    assert history.entries[-1].info is info and info.seen == 3


@pytest.mark.usefixtures("recorded")
def test_what_a_program_that_passes_costs_to_compile_is_not_estimated(monkeypatch):
    """Programs of small operations that never return are run from what was recorded: nobody makes steps of it, or asks what their compilation takes."""
    seen = []
    monkeypatch.setattr(disk_cache, "enabled", lambda: False)  # where a program of its size may lie, its steps are asked for
    monkeypatch.setattr(executor.costs, "program_seconds", lambda *_: seen.append("seconds") or 1.0)
    monkeypatch.setattr(program_info, "Step", lambda *_: seen.append("step"))
    for n in range(200, 210):
        x = torch.arange(float(n))
        y = x * 2
        y.add_(1)
        assert (y[3:] * 0.5 - 1).tolist() == [k - 0.5 for k in range(3, n)]
    assert not seen


def test_a_program_that_passes_leaves_nodes_where_others_stand():
    x = torch.arange(5.0)
    def body(v):
        first = v * 2.5 - 1
        assert (x * 2.5 - 1).sum().item() == 20  # a program of its own, while the mapped one is under way
        return first.exp()
    want = torch.exp(torch.arange(15.0).view(3, 5) * 2.5 - 1)
    torch.testing.assert_close(torch.vmap(body)(torch.arange(15.0).view(3, 5)), want)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], 0.1)  # its step ends a program that waits; the next one goes the same way
    weight = optimizer.param_groups[0]["params"][0]
    seen = []
    for n in (11, 12, 11):
        optimizer.zero_grad()
        (weight * torch.full((3,), float(n)) - 1.25).sum().backward()
        optimizer.step()
        pending = (weight * 3 - 1.25).sum()
        seen.append(weight.tolist())
        seen.append(pending.item())
    np.testing.assert_allclose([*seen[0], seen[1], *seen[2], seen[3], *seen[4], seen[5]],
                               [*[-0.1] * 3, -4.65, *[-1.3] * 3, -15.45, *[-2.4] * 3, -25.35], rtol=1e-5)


def test_growing_shapes_compile_nothing():
    before = len(history.compilations)
    for n in range(1, 40):
        assert torch.ones(n).cumsum(0).sum().item() == n * (n + 1) / 2
    assert len(history.compilations) == before


def test_dead_results_are_not_outputs():
    with program.tier("compiled"):
        x = torch.ones(7) * 3
        y = x + 1
        del x
        y = y * y
        assert y.tolist() == [16.0] * 7
        info = history.entries[-1].info
    assert len(info.executables[-1].live) == 1


@recorded
def test_executables_keep_no_source_lines():
    with program.tier("compiled"):
        torch.tensor([1.0, 2.0]).exp().add(0.5).tolist()
        info = history.entries[-1].info
    text = info.executables[-1].call.as_text()
    assert "exponential" in text and "op_name" not in text and "source_file" not in text


@recorded
def test_parameters_are_donated():
    with program.tier("compiled"):
        w = torch.zeros(1000)
        for _ in range(4):
            w = w + 1.0
            w.sum().item()
        info = history.entries[-1].info
    assert any(e.donated for e in info.executables)
    assert w.tolist() == [4.0] * 1000


@pytest.mark.parametrize("at_once", [False, True])
def test_only_what_a_result_looks_into_is_kept_from_being_donated(at_once):
    """A policy in NumPy splits its results; its parameters are still the optimizer's to take over."""
    x, w = torch.ones(8), torch.ones(8)
    with program.tier(None if at_once else "numpy"):
        for _ in range(8 if at_once else 1):  # from the fourth on, each operation at once
            y = x * w
            a, b = y.chunk(2)
            top = x[:4]
            (a.tolist(), b.tolist(), top.tolist())
    assert a._current().array.base is not None and top._current().array.base is not None
    assert x._current().shared and not w._current().shared


@recorded
@pytest.mark.parametrize("wrap", [lambda f: f, torch.compile], ids=["recorded", "compile"])
def test_what_replaces_an_input_takes_its_buffer(wrap):
    """A parameter and its gradient have one shape; the buffers of Adam's inputs go to Adam's results, each to its own."""
    layer = torch.nn.Linear(64, 64, bias=False)
    opt = torch.optim.Adam(layer.parameters())
    x = torch.randn(8, 64)

    @wrap
    def step():
        opt.zero_grad()
        loss = layer(x).square().sum()
        loss.backward()
        opt.step()
        return loss

    with program.tier("compiled"):
        for _ in range(6):
            step().item()
        info = history.entries[-1].info
    exe = info.executables[-1]
    plan = info.steps[-1].plan
    reads = info.steps[-1].refs
    taken = dict(zip(exe.donated, exe.live))
    held = [~r for r in reads if r.__class__ is int and ~r in taken]  # parameter, both moments: Adam's and the segment's order
    assert len(held) == 3 and [taken[i] for i in held] == list(range(info.steps[-1].out, info.steps[-1].out + 3)), plan
    assert "{0}: (0, {}, may-alias), {1}: (1, {}, may-alias), {2}: (2, {}, may-alias)" in exe.call.as_text().splitlines()[0]


def test_shape_errors_leave_the_recorder_usable():
    x = torch.ones(3)
    y = x * 2
    with pytest.raises(RuntimeError, match="must match"):
        y + torch.ones(4)
    assert y.sum().item() == 6


@recorded
def test_failing_kernels_reach_only_what_depends_on_them():
    good, index = torch.arange(4.0) * 2, torch.arange(3) * 5
    bad = good[index]
    with pytest.raises(IndexError, match="out of bounds"):
        bad.tolist()
    assert good.tolist() == [0, 2, 4, 6]


@recorded
def test_ctrl_c_loses_nothing(monkeypatch):
    y = torch.ones(3) * 5
    with monkeypatch.context() as m:
        m.setattr(executor, "run", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            y.tolist()
    assert y.tolist() == [5, 5, 5]


def test_exceptions_in_hooks_leave_the_engine_usable():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    handle = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    handle.remove()
    z = (x * 3).sum()
    z.backward()
    assert x.grad.tolist() == [3, 3]


def test_threads_record_at_once():
    results = {}

    def work(k):
        t = torch.full((8,), float(k))
        for _ in range(50):
            t = t * 1.0 + 1.0
        results[k] = t.tolist()
    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {k: [k + 50.0] * 8 for k in range(6)}


def test_long_programs_are_cut():
    x = torch.zeros(2)
    for _ in range(program.LONGEST + 50):
        x = x + 1.0
    assert x.tolist() == [program.LONGEST + 50] * 2


@pytest.mark.parametrize("body", [7, 100, 700, 2300])
def test_programs_of_a_loop_that_looks_at_nothing_return(body):
    steps = 20000 // body
    x = torch.ones(3)
    program.flush()
    before = program.trie.size
    for _ in range(steps):
        for _ in range(body - 2):
            x = x * 0.5
        x = (x + 1.0).abs()
    made = program.trie.size - before
    expected = 1.0
    for _ in range(steps):
        expected = expected * 0.5 ** (body - 2) + 1.0
    np.testing.assert_allclose(x.tolist(), [expected] * 3, rtol=1e-6)
    if not program.is_immediate():
        assert made < 20000 / 2


def test_a_loop_over_positions_returns():
    """Positions of one step, made from a number, are known: no check of them is recorded that would depend on where a program ends."""
    table, x = torch.linspace(0, 1, 50), torch.ones(4, 1)
    program.flush()
    before = program.trie.size
    for i in range(1500):
        t = torch.full((4,), i % 50)
        for _ in range(9):
            x = x.sin()
        x = x * 0.5 + table.gather(-1, t)[:, None]
    made = program.trie.size - before
    table, expected = table.tolist(), 1.0
    for i in range(1500):
        for _ in range(9):
            expected = math.sin(expected)
        expected = expected * 0.5 + table[i % 50]
    np.testing.assert_allclose(x[:, 0].tolist(), [expected] * 4, rtol=1e-5)
    if not program.is_immediate():
        assert made < 1500 * 15 / 3


@recorded
@pytest.mark.usefixtures("recorded")
def test_explain_names_line_reason_and_change():
    for n in (3, 4):
        (torch.ones(n) + 1).tolist()
    text = str(torch.explain())
    assert "test_program.py:" in text and "value observed" in text and "operation 0" in text


def test_users_jax_settings_stay():
    assert not jax.config.jax_enable_x64
    assert jax.numpy.ones(1).dtype == np.float32 and torch.ones(1, dtype=torch.float64).dtype is torch.float64
    assert torch.tensor(2**40).item() == 2**40


@pytest.mark.parametrize("value", ["(x * 2).sin().sum()", "t.linalg.inv((x[:4] / 9).view(2, 2)).sum()"])
def test_disk_cache_serves_a_new_process(tmp_path, value):
    """The second calls LAPACK, whose pointers a process sets up as it lowers: the new process lowers nothing."""
    code = ("import torchlike as t\nfrom torchlike._core import history\nx = t.arange(6.)\n"
            "from torchlike._core.program import tier\nwith tier('compiled'):\n"
            f"    for _ in range(2): v = {value}.item()\nprint(v, [c[2] for c in history.compilations])")
    env = {**os.environ, "TORCHLIKE_CACHE": str(tmp_path), "TORCHLIKE_IMMEDIATE": "0"}
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env) for _ in range(2)]
    assert "compiled now" in runs[0].stdout and "from disk" in runs[1].stdout, runs
    assert runs[0].stdout.split()[0] == runs[1].stdout.split()[0]


def test_memory_shared_with_numpy():
    a = np.zeros(3, np.float32)
    t = torch.from_numpy(a)
    a[0] = 5
    assert t.tolist() == [5, 0, 0]
    t[1] = 7
    assert a.tolist() == [5, 7, 0]
    b = t.numpy()
    b += 1
    assert t.tolist() == [6, 8, 1]


def test_refused_allocation():
    with pytest.raises(RuntimeError, match="overflowed"):
        torch.zeros(2**62, 2**10)


@recorded
def test_results_that_do_not_depend_on_a_failure_survive_a_second_sight():
    """Bound programs go on behind the first exception."""
    for _ in range(3):
        good, index = torch.arange(4.0) * 2, torch.arange(3) * 5
        bad = (good[index] + 1) * 2
        with pytest.raises(IndexError, match="out of bounds"):
            bad.tolist()
        assert good.tolist() == [0, 2, 4, 6]


@pytest.mark.usefixtures("recorded")
def test_looking_at_elements_of_what_is_known_runs_nothing():
    with program.immediate(False):
        x = torch.arange(6).reshape(2, 3).t()
        x.tolist()
        pending = torch.ones(3) * 5
        assert [[int(e) for e in row] for row in x] == [[0, 3], [1, 4], [2, 5]]
        assert [pending[i].ndim for i in x[0, :1]] == [0]
        assert pending._value.array is None and pending.tolist() == [5, 5, 5]


def _computed_at_once(work) -> int:
    before = history.at_once
    work()
    return history.at_once - before


@pytest.fixture
def unsettled():
    """Operations are recorded, as nothing short ran lately; the shapes are the test's own."""
    with program.immediate(False):
        yield


@pytest.mark.usefixtures("unsettled")
def test_a_short_program_is_computed_at_once_whatever_longer_ones_contain():
    """A program's beginning tells how it goes on: `sum` here also stands in a long one, and begins others."""
    x, y = torch.arange(37.0), torch.arange(37.0) + 1
    x.tolist(), y.tolist()

    def long():
        z = x.cos()
        for _ in range(40):
            z = z + x.sum()
        return z[0].item()

    def short():
        assert y.sum().item() == 703
    for _ in range(4):
        assert _computed_at_once(long) == 0
    for _ in range(3):
        short()
    assert _computed_at_once(short) == 1
    assert _computed_at_once(long) == 0  # it begins as before
    assert _computed_at_once(short) == 1


@pytest.mark.usefixtures("unsettled")
def test_after_short_programs_others_are_computed_at_once():
    """Programs that never return, of other shapes each time."""
    def look(n):
        assert (torch.ones(3, n) * 2 + 1).sum().item() == 9 * n
    for n in range(runs.STREAK):
        assert _computed_at_once(lambda: look(301 + n)) == 0  # noqa: B023
    assert _computed_at_once(lambda: look(317)) == 4
    x = torch.ones(301)

    def long():
        z = x
        for _ in range(60):
            z = z * 1.5
        return z[0].item()
    counts = []
    for _ in range(3):
        for n in range(runs.STREAK):
            look(320 + n)
        counts.append(_computed_at_once(long))
    assert 0 < counts[0] < 30 and counts[1:] == [0, 0]  # as many as a short program has, and none once that was wrong
    for k in range(1 + runs.SIGHTS + 1):
        assert _computed_at_once(lambda: (x * 1.5).sum().item()) == (2 if k > runs.SIGHTS else 0)
    assert long() == pytest.approx(1.5 ** 60, rel=1e-5)


def test_a_short_program_that_returns_is_computed_at_once():
    with program.immediate(False):
        x = torch.arange(41.0)
        x.tolist()
        for i in range(6):
            before = history.at_once
            y = x * i - 1
            z = y.sum()
            assert (z._value.array is None) == (i < 3) and history.at_once == before + 3 * (i >= 3)
            assert z.item() == 820 * i - 41
        assert f"{history.at_once} small operations computed at once" in str(torch.explain())
        bad = x * 2**62 / 0  # no warning of NumPy's
        assert bad[0].isnan() and bad[1].isinf()
        w = torch.arange(41.0, requires_grad=True)
        (w * 3 - 1).sum().backward()
        assert w.grad.tolist() == [3] * 41


@pytest.mark.usefixtures("unsettled")
def test_writes_at_indices_into_few_numbers_are_computed_at_once():
    """Of many a write is no copy where a program knows that nobody reads what was there."""
    few, many, index = torch.zeros(11), torch.zeros(host.WRITTEN), torch.arange(3)
    few.tolist(), many.tolist(), index.tolist()

    def write(x):
        return x.scatter(0, index, 1.5)[1].item()
    with program.immediate(False):
        for x, at_once in (few, 1), (many, 0):
            for _ in range(runs.SIGHTS):
                assert write(x) == 1.5
            assert _computed_at_once(lambda: write(x)) == at_once  # noqa: B023
    assert few.tolist() == [0] * 11


def test_operations_of_a_long_program_are_recorded_until_short_ones_begin_like_it():
    def long(x):
        for _ in range(100):
            x = (x * 1.5).sin()
        return x.sum()
    with program.immediate(False), program.tier("numpy"):
        x = torch.arange(43.0)
        x.tolist()
        for lost in (1, runs.LOST):
            assert abs(long(x).item()) < 43
            for _ in range(lost + runs.SIGHTS):
                y = x * 1.5
                assert y._value.array is None and y[1].item() == 1.5 and sum(y.tolist()) == 1354.5
            y = x * 1.5
            assert y._value.array is not None and y[1].item() == 1.5 and y.sum().item() == 1354.5


def test_a_sequence_is_recorded_whole():
    """Where it leads from a node of the trie is noted the first time, so none of its operations may be left out then."""
    with program.immediate(False):
        x = torch.arange(47.0)
        x.tolist()
        for _ in range(4):
            made = x * 2 + 1
            made.tolist()
        assert (x * 2)._value.array is not None
        twice = program.Sequence()
        twice.steps, twice.kept, twice.n_results = [(OPS["mul"], (), (~0, ~1)), (OPS["add"], (), (0, ~2))], [1], 2
        for _ in range(3):
            v, = program.record_all(twice, [x._value, 2, 1])
            assert v.array is None and torch.Tensor._of(v).tolist() == made.tolist()


@recorded
def test_a_backward_that_is_cut_by_length_keeps_what_is_needed(monkeypatch):
    """Recorded whole, all that it had made would be among the results of the program that ends in it."""
    monkeypatch.setattr(program, "LONGEST", 50)
    with program.immediate(False), program.tier("numpy"):
        monkeypatch.setattr(program.state, "limit", 50)
        lives = []
        monkeypatch.setattr(executor, "_run_numpy", lambda prog, bound, live, *rest, run=executor._run_numpy: lives.append(len(live)) or run(prog, bound, live, *rest))
        w = torch.ones(3, requires_grad=True)
        for _ in range(5):
            w.grad = None
            x = w
            for _ in range(30):
                x = x * 0.5 + 1.0
            x.sum().backward()
            assert w.grad.tolist() == [0.5 ** 30] * 3
    assert max(lives) < 10 and len(lives) > 12, lives


def test_an_element_at_a_known_position_is_a_view():
    x, positions = torch.zeros(5), torch.tensor([1, 3])
    positions.tolist()
    for i in positions:
        x[i].fill_(i)
    assert x.tolist() == [0, 1, 0, 3, 0]


def test_large_intermediates_are_dropped():
    with program.tier("numpy"):
        for _ in range(3):
            x = torch.ones(1 << 22)
            for _ in range(40):
                x = x + 1.0
            tracemalloc.start()
            assert x[:2].tolist() == [41, 41]
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 5 * 4 << 22, peak
            del x


def test_norm_derivative_in_numpy_makes_one_array():
    """Weights under weight_norm are large; a row of zeros still has zeros for its derivative."""
    x = np.arange(1, (1 << 20) + 1, dtype=np.float32).reshape(256, -1)
    g = np.full((256, 1), 2, np.float32)
    for zero in (False, True):
        x[0] *= not zero
        out = np.sqrt((x * x).sum(1, keepdims=True))
        tracemalloc.start()
        made = silently(norms.norm_vjp, np, g, x, out, 2, (1,), True)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert zero or peak < 1.5 * x.nbytes, peak
        np.testing.assert_array_equal(made[1:], (x / np.maximum(out, 1e-30))[1:] * 2)
        assert zero == (not made[0].any())


@recorded
def test_large_host_arrays_are_let_go():
    """A first step's program runs once, and would keep the weights that it took over for as long as it is known."""
    with program.tier("numpy"):
        x = torch.eye(300) + 1.0
        x.sum().item()
    kept = weakref.ref(x._value.array)
    with program.tier("compiled"):
        x.mul_(3.0).add_(x)
        x.sum().item()
        for _ in range(200):  # JAX lets go of what another thread of its was through with when it is called again
            if kept() is None:
                break
            time.sleep(0.01)
            x.sum().item()
    assert kept() is None


def test_host_arrays_are_handed_over_whole():
    """Inputs that NumPy made reach a compiled program, donated or kept, small or large, and are what they were."""
    for n in (3, 5000):
        kept = torch.arange(float(n))
        for _ in range(3):
            with program.tier("numpy"):
                x = torch.arange(float(n)) + 0.5
                x.sum().item()
            with program.tier("compiled"):
                y = x * 2
                z = x + kept
                y.sum().item()
            assert x.tolist() == [k + 0.5 for k in range(n)] and kept[-1].item() == n - 1
            with program.tier("compiled"):
                x = x + 1.0
                x.sum().item()
            assert x[1].item() == 2.5 and z[1].item() == 2.5


@pytest.mark.parametrize("join", [torch.cat, torch.stack])
def test_many_known_tensors_are_joined_at_once(join):
    samples = [torch.tensor([float(k), -1.0]).unsqueeze(0) for k in range(40)]
    torch.stack(samples[:2]).sum().item()
    program.flush("test")
    together = join(samples)
    assert not program.state.program.inputs and together._value.array is not None
    assert torch.equal(together.reshape(-1, 2)[:, 0], torch.arange(40.0))
    mapped = torch.func.vmap(lambda row: join([row] * 9).sum())(torch.arange(6.0).reshape(3, 2))
    assert mapped.tolist() == [9, 45, 81]
    leaf = torch.ones(1, 2, requires_grad=True)
    assert join([*samples, leaf]).requires_grad
    with pytest.raises(RuntimeError, match="must match except|equal size"):
        join([*samples, torch.ones(1, 3)])


def test_an_executable_that_takes_inputs_over_serves_a_few_runs_that_keep_them(monkeypatch):
    monkeypatch.setattr(disk_cache, "enabled", lambda: False)  # an earlier process may have left the other one there
    kept: list = []

    def run(times, keep):
        x = torch.ones(3)
        x.tolist()
        for _ in range(times):
            kept.extend([x] if keep else [])
            x = x * 2 + 1
            x.sum().item()
        return len(history.compilations)
    with program.immediate(False), program.tier("compiled"):
        compiled = run(4, False)
        kept.clear()
        assert run(executor.LENT, True) == compiled
        assert run(3, True) == compiled + 1
        assert [t[0].item() for t in kept] == [2.0 ** (k + 1) - 1 for k in (*range(executor.LENT), *range(3))]


def test_a_program_among_many_others_proves_itself_later(monkeypatch):
    monkeypatch.setattr(disk_cache, "enabled", lambda: False)

    def sights(others, side):
        """How often the program is seen until it is compiled, with other programs in between."""
        for k in range(100):
            compiled = len(history.compilations)
            x = torch.ones(1400, 1400 + others + side)
            for _ in range(9):
                x = x + 1
            x.sum().item()
            if len(history.compilations) > compiled:
                return k
            for i in range(others):
                (torch.ones(side, side + i) * 2).sum().item()
        return 100
    with program.immediate(False), program.tier(None):
        alone, crowded, beside_small_ones = sights(0, 0), sights(31, 900), sights(31, 1)
        assert alone == beside_small_ones < crowded < 100


def test_executables_are_forgotten_before_mappings_run_out(monkeypatch):
    """Linux ends a process that has 65,530 of them; each executable takes six or more."""
    monkeypatch.setattr(executor, "COUNTED", 40)
    monkeypatch.setattr(mappings, "are_half_used", lambda: True)
    before = sum(len(info.executables) for info in program_info.infos)

    def program(n):
        return (torch.arange(n) * 1.5 + n).sin()
    step = torch.compile(lambda x: x * 2 + 1)
    x = torch.ones(7)
    with executor.tier("compiled"):
        for n in range(2, 42):
            assert program(n)[-1].item() == pytest.approx(math.sin((n - 1) * 1.5 + n), abs=1e-5)
            x = step(x) - 2
        assert x.tolist() == [1.0] * 7 and program(5)[-1].item() == pytest.approx(math.sin(11), abs=1e-5)
    assert sum(len(info.executables) for info in program_info.infos) < max(20, before)


@pytest.mark.parametrize(("most", "half_used"), [(10, True), (10**9, False)])
def test_mappings_are_counted(monkeypatch, tmp_path, most, half_used):
    """This process has some hundred, or some ten thousand."""
    (tmp_path / "most").write_text(f"{most}\n")
    monkeypatch.setattr(mappings, "MOST", str(tmp_path / "most"))
    assert mappings.are_half_used() is half_used


@pytest.mark.parametrize(("outside", "block"), [(False, lambda: program.tier("compiled")), (False, lambda: program.tier("numpy")),
                                                (True, lambda: program.immediate(False))])
def test_an_error_at_the_end_of_a_block_ends_it(monkeypatch, outside, block):
    """What was recorded inside runs there, and may be interrupted."""
    def interrupted(*_):
        raise KeyboardInterrupt
    with program.immediate(outside):
        before = executor.options.tier, program.state.limit
        with pytest.raises(KeyboardInterrupt), block():
            x = torch.ones(200, 200) + 1  # fewer numbers may be computed at once
            monkeypatch.setattr(executor, "run", interrupted)
        monkeypatch.undo()
        del x
        assert (executor.options.tier, program.state.limit) == before


def test_results_that_are_one_value():
    """They are one output of the program and one array, which none of them may overwrite for the other."""
    for where in ("compiled", "numpy"):
        with program.tier(where):
            x, y = torch.arange(3.).requires_grad_(), torch.ones(3, requires_grad=True)
            weight = torch.tensor([5., 6., 7.])
            a, b = torch.autograd.grad(x.clone().add_(y), (x, y), weight)
            del weight
            assert a.tolist() == b.tolist() == [5., 6., 7.]
            a.mul_(2)
            b.add_(1)
            assert a.tolist() == [10., 12., 14.] and b.tolist() == [6., 7., 8.]


@pytest.mark.parametrize("shown", [lambda p: p.reshape(-1), lambda p: p[:, 1:]])
def test_a_program_stays_itself_once_its_indices_are_arrays_of_jax(shown):
    """The range of what a view shows must not be forgotten when a compiled program takes over: that checks no range."""
    places, table = torch.arange(12).reshape(4, 3) % 5, torch.ones(5, 2)
    places.tolist()
    history.entries.clear()
    with executor.tier("compiled"):
        for _ in range(3):
            (table[shown(places)] * 2).sum().item()
    steps = [e.info for e in history.entries]
    assert program.is_immediate() or (len(steps) == 3 and len({id(info) for info in steps}) == 1)
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        table[:4][shown(places)]


@recorded
def test_what_nobody_holds_is_not_computed(monkeypatch):
    ran = []
    x = torch.arange(4.0)
    with program.tier("numpy"):
        kept = (x * 2.5).cos()
        lost = (x * 1.5).sin()
        plan = program.state.program.node.plan
        monkeypatch.setattr(plan, "_numpy", lambda a: ran.append(a) or np.sin(a))
        del lost
        kept = kept + 0.25
        np.testing.assert_allclose(kept.tolist(), np.cos(np.arange(4) * 2.5) + 0.25, rtol=1e-5)
        assert not ran
        held = (x * 1.5).sin()
        np.testing.assert_allclose(held.tolist(), np.sin(np.arange(4) * 1.5), rtol=1e-5)
        assert len(ran) == 1


@recorded
def test_an_operation_whose_kernel_cannot_be_made_takes_only_what_depends_on_it(monkeypatch):
    from torchlike._core import registry
    x = torch.arange(3.0)
    bad = x.atan()
    plan, made = program.state.program.node.plan, registry._numpy_kernel

    def fails():
        raise ValueError("no such kernel")
    monkeypatch.setattr(plan, "_numpy", None)
    monkeypatch.setattr(registry, "_numpy_kernel", lambda p: fails() if p is plan else made(p))
    good = x + 0.5
    assert good.tolist() == [0.5, 1.5, 2.5]
    with pytest.raises(ValueError, match="no such kernel"):
        bad.tolist()


def test_what_fits_no_memory_is_not_compiled():
    """XLA ends the process where the number of an array's bytes overflows."""
    def row():
        return torch.ones(2).expand(2**58, 2)[3]
    assert row().tolist() == [1, 1]
    with program.tier("compiled"), pytest.raises(RuntimeError, match="larger than any memory"):
        row().tolist()


def test_memory_tells_that_it_has_grown():
    done = subprocess.run([sys.executable, "-c", GROWS], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["True", "False", "True", "False", "True"], done.stderr


GROWS = """
import numpy as np
from torchlike._core import allocator
allocator.keep()
asked = [allocator.has_grown(), allocator.has_grown()]
kept = np.ones(1 << 24)
asked.append(allocator.has_grown())
del kept
allocator.give_back()
asked.append(allocator.has_grown())
allocator.forget_size()
print(*asked, allocator.has_grown())
"""


@pytest.mark.parametrize(("large", "grows"), [(True, True), (True, False), (False, False)])
def test_memory_is_tidied_ever_more_seldom(monkeypatch, large, grows):
    """While it grows where programs are large; where all are small, whose memory is little of the process's, in any case."""
    tidied = []
    monkeypatch.setattr(executor.options, "roomy", large)
    monkeypatch.setattr(executor.allocator, "has_grown", lambda: grows)
    monkeypatch.setattr(executor.allocator, "give_back", lambda: tidied.append(program_info.clock.now))
    x = torch.ones(1500, 1500) if large else torch.ones(400, 300)
    with program.tier("compiled"):
        (x + 1).sum().item()  # compiled here
        tidied.clear()
        for _ in range(64):
            (x + 1).sum().item()
    waits = [b - a for a, b in zip(tidied, tidied[1:])]
    if large and not grows:
        assert not tidied
    else:
        assert len(tidied) >= 3 and all(later > sooner for sooner, later in zip(waits, waits[1:])), tidied


def scaled(x: torch.Tensor, numbers: list, shifts: list) -> torch.Tensor:
    for a, k in zip(numbers, shifts):
        x = x * a + k
    return x


@recorded
@pytest.mark.parametrize("layers", [2, 20])  # numbers in two vectors; each an argument of its own
def test_a_program_takes_any_numbers(layers):
    x = np.linspace(-1, 1, 8, dtype=np.float64)
    drawn = np.random.default_rng(0)
    before = len(history.compilations)
    runs = [([1.5] * layers, [1] * layers)] * 3
    runs += [([float(a) for a in drawn.normal(size=layers)], [int(k) for k in drawn.integers(-9, 9, layers)]) for _ in range(3)]
    changed = runs[-1][0].copy()
    for place, a in ((0, -0.0), (layers - 1, 3.0), (0, 0.0), (0, math.nan), (layers - 1, 2.0)):  # some of them, others again
        changed[place] = a
        runs += [(changed.copy(), runs[-1][1])] * 2
    with program.tier("compiled"):
        for numbers, shifts in runs:
            got = scaled(torch.from_numpy(x.copy()), numbers, shifts).numpy()
            want = x
            for a, k in zip(numbers, shifts):
                want = want * a + k
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    assert len(history.compilations) == before + 1
    assert history.entries[-1].info.executables[0].numbers.types == (None if layers == 2 else "d" * layers + "q" * layers)


def test_complex_numbers_of_a_program_of_many():
    x = np.arange(4.0)
    with program.tier("compiled"):
        for _ in range(3):
            y, want = torch.from_numpy(x), x
            for k in range(12):
                y, want = y * (1 + k * 1j) - 2, want * (1 + k * 1j) - 2
            np.testing.assert_allclose(y.numpy(), want, rtol=1e-12)


def test_programs_own_clock_is_not_asked():
    """Tests replace `time.perf_counter` by one that answers a few times."""
    def f(x):
        return (x * 2).sum()
    with mock.patch("time.perf_counter", side_effect=[]):
        assert f(torch.ones(7)).item() == torch.compile(f)(torch.ones(7)).item() == 14


def test_shapes_that_never_return_do_not_fill_the_memory(monkeypatch):
    """Graphs of ever new sizes: plans, avals and programs of long ago are let go; what is still held is known."""
    from torchlike._core import registry
    from torchlike._core.aval import _interned
    monkeypatch.setattr(registry, "MOST_PLANS", 50)
    monkeypatch.setattr(history, "KEPT", 100)
    held, want = torch.ones(1234, 3), torch.ones(5).cumsum(0).tolist()
    sizes = []
    for n in range(600):
        (torch.ones(7_000 + n) * 2 + 1).cumsum(0)[-1].item()
        sizes.append((len(_interned), sum(1 for _ in registry.plans()), sum(e.info is not None for e in history.entries)))
    assert all(max(column[300:]) <= max(column[:300]) + 20 for column in zip(*sizes)), sizes[::50]
    assert held._aval is torch.zeros(1234, 3)._aval and torch.ones(5).cumsum(0).tolist() == want
    assert (held + torch.ones(1234, 3)).sum().item() == 2 * 3 * 1234


def test_a_finalizer_may_make_tensors_while_an_aval_is_made():
    """Garbage collections come at any allocation, also where that of an aval is under way."""
    from torchlike._core import aval
    done = []

    def finalizer():
        with aval._lock:
            done.append(torch.zeros(4321, 2).sum().item())
    thread = threading.Thread(target=finalizer, daemon=True)
    thread.start()
    thread.join(30)
    assert done == [0.0]


@pytest.mark.usefixtures("recorded")
def test_files_beside_the_package_are_the_programs():
    name = os.path.dirname(torch.__file__) + "_more.py"
    exec(compile("(x * 2).sum().item()", name, "exec"), {"x": torch.ones(3)})
    assert history.entries[-1].place == (name, 1)


@recorded
def test_programs_that_return_seldom_are_forgotten(monkeypatch):
    """Changing programs, some of which return in the end, do not add up; whoever stands inside a forgotten one goes on."""
    monkeypatch.setattr(program_info, "UNSEEN", 50)
    program.reset("test")  # what other tests left counts, too
    program.state.whole = False
    w = torch.linspace(0.1, 1, 9).view(3, 3).requires_grad_()

    def gradient(turns):
        x, want = w, np.linspace(0.1, 1, 9, dtype=np.float32).reshape(3, 3)
        for t in turns:
            x = x * 1.01 if t else x + 0.01
        x.sum().backward()
        got, w.grad = w.grad.tolist(), None
        np.testing.assert_allclose(got, np.full_like(want, 1.01 ** sum(turns)), rtol=1e-6)

    sizes = []
    for k in range(400):
        turns = [k >> i & 1 for i in range(9)]
        for _ in range(3):  # the first sight, the walk, its return
            gradient(turns)
        sizes.append((len(program_info.infos), trie.trie.size))
        if k == 200:
            held = w * 3.0  # recorded where others are forgotten
            for t in turns[:4]:
                held = held * 1.01 if t else held + 0.01
    assert max(infos for infos, _ in sizes[100:]) <= 2 * max(infos for infos, _ in sizes[:100]) < 300
    assert max(nodes for _, nodes in sizes[100:]) <= 2 * max(nodes for _, nodes in sizes[:100])
    for k in (5, 399):
        gradient([k >> i & 1 for i in range(9)])
    assert held.shape == (3, 3) and torch.isfinite(held).all()


def test_who_stands_at_a_forgotten_program_goes_on():
    program.flush("test")
    x = torch.linspace(0, 1, 70001)
    y = x * 1.25 + 0.5
    trie.keep_only([])
    z = (y - x).sqrt()
    want = np.sqrt(np.linspace(0, 1, 70001, dtype=np.float32) * np.float32(1.25) + np.float32(0.5) - np.linspace(0, 1, 70001, dtype=np.float32))
    np.testing.assert_allclose(z.tolist(), want, rtol=1e-5)
