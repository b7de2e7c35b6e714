"""Ctrl-C wherever CPython looks for signals: what was made stays right, and the engine works on.

The interpreter runs signal handlers when a function starts, after a call and at the end of a loop's round. These tests raise
SIGINT at each such place in turn.
"""
import dis
import gc
import os
import signal
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest

from torchlike._core import interrupts
from torchlike._core.interrupts import Uninterrupted

ASKS = ("CALL", "CALL_FUNCTION_EX", "CALL_KW", "RESUME")
_places: dict = {}


def _asks_after(code):
    """Offsets of a code object's instructions before which the interpreter has just looked for signals."""
    if code not in _places:
        steps = list(dis.get_instructions(code))
        found = {b.offset for a, b in zip(steps, steps[1:]) if a.opname in ASKS}
        _places[code] = found | {s.argval for s in steps if s.opname.startswith("JUMP_BACKWARD")}
    return _places[code]


def interrupted(k, function, folder):
    """Run function, with a SIGINT at the k-th place within files of `folder`; whether there was such a place."""
    passed = 0

    def inside(frame, event, arg):
        nonlocal passed
        if event == "opcode" and frame.f_lasti in _asks_after(frame.f_code):
            passed += 1
            if passed == k:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return inside

    def entered(frame, event, arg):
        if folder not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return inside
    before = sys.gettrace()
    gc.disable()  # what is raised in a finalizer or in JAX's callback of a collection is lost
    sys._getframe().f_trace_opcodes = True  # Python 3.12's settrace looks whether any frame wants opcodes
    sys.settrace(entered)
    try:
        function()
        return False
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
        gc.enable()


def _some_work(x, sort, made):
    for i in range(3):
        x = x * 1.5 + float(i)
        made.append(x)
        made.append(sort(x))
        made.append(made[-1] @ x + 2)
        x = x - made[-1] * 0.25 * i


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("folder", ["_core/program.py", "_core/executor.py", "_tensor.py"])
def test_results_stay_right(subject, tier, folder):
    from torchlike._core import program
    start = np.array([3.0, 1.0, 2.0])
    want: list = []
    _some_work(start, np.sort, want)
    k, going = 0, True
    with program.tier(tier):
        _some_work(subject.tensor(start), lambda x: x.sort()[0], [])
        while going:
            k += 1 if tier == "numpy" else 5  # each place makes programs of its own, which are compiled
            x, made = subject.tensor(start), []
            going = interrupted(k, lambda: (_some_work(x, lambda x: x.sort()[0], made), made[4].sum().item()), folder)  # noqa: B023
            after = subject.ones(2) * 2.5 + k
            np.testing.assert_allclose(after.numpy(), 2.5 + k, err_msg=f"place {k}")
            for mine, right in zip(made, want):
                np.testing.assert_allclose(mine.numpy(), right, err_msg=f"place {k}")
            np.testing.assert_array_equal(x.numpy(), start)
    assert k > 20
    assert not jax.config.jax_enable_x64


def _trained(torch, steps, wrap=lambda step: step):
    torch.manual_seed(0)
    w = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([w], lr=0.25)

    def step():
        optimizer.zero_grad()
        ((w * w).sum() * 0.5).backward()
        optimizer.step()
    step = wrap(step)
    for _ in range(steps):
        step()
    return w, step


@pytest.mark.parametrize("folder", ["_core/program.py", "_core/executor.py", "_core/interrupts.py"])
@pytest.mark.usefixtures("recorded")
def test_a_training_step_is_done_or_not(subject, folder):
    """The program donates the parameter's old array: an interruption must not lose the new one."""
    from torchlike._core import program
    k, going = 0, True
    with program.tier("compiled"):
        while going:
            k += 1
            w, step = _trained(subject, 2)
            w.detach().sum().item()
            going = interrupted(k, lambda: (step(), w.detach().sum().item()), folder)  # noqa: B023
            seen = w.detach().clone().numpy()
            assert any(np.allclose(seen, 0.75 ** n) for n in (2, 3)), (k, seen)
            step()
            np.testing.assert_allclose(w.detach().numpy(), seen * 0.75, rtol=1e-6)
    assert k > 5


@pytest.mark.parametrize("folder", ["_core/program.py", "_core/executor.py", "_core/executable.py", "_replay.py"])
def test_a_compiled_step_is_done_or_not(subject, folder):
    """As above, where the step is started without a program."""
    k, going = 0, True
    w, step = _trained(subject, 8, subject.compile)
    while going:
        k += 1
        before = w.detach().clone().numpy()
        going = interrupted(k, lambda: (step(), w.detach().sum().item()), folder)
        seen = w.detach().clone().numpy()
        assert any(np.allclose(seen, before * 0.75 ** n) for n in (0, 1)), (k, before, seen)
        step()
        np.testing.assert_allclose(w.detach().numpy(), seen * 0.75, rtol=1e-6)
    assert k > 2


def donating_program_under_signals(timer):
    """A real SIGINT, or a timer's signal, at any time: each step is done or not."""
    import torchlike
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    w, step = _trained(torchlike, 6)
    w.detach().sum().item()
    seen = [6]

    def twenty():  # apart: Python 3.12.1 leaves a loop's jump back out of the `try` around it if the loop is in another
        while len(seen) < 20:
            step()
            seen.append(w.detach().sum().item())
    for round_ in range(30):
        try:
            if timer:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0002 * round_)
            else:
                threading.Timer(0.0005 + 0.0002 * round_, os.kill, (os.getpid(), signal.SIGINT)).start()
            for _ in range(200):
                w.data.fill_(1.0)
                seen.clear()
                twenty()
        except KeyboardInterrupt:
            pass
        done = np.log(w.detach().numpy()) / np.log(0.75)
        assert np.allclose(done, done.round(), atol=1e-3) and len(seen) <= done[0].round() + 20, done
    print("right")


@pytest.mark.parametrize("timer", [False, True])
def test_signal_during_a_donating_program(timer):
    """In a process of its own: a signal that comes late must not end the test run."""
    code = f"import test_interrupts; test_interrupts.donating_program_under_signals({timer})"
    done = subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(__file__), capture_output=True, text=True, timeout=300,
                          env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))})
    assert done.stdout.strip() == "right", done.stderr[-2000:]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM])
def test_signals_wait_and_handlers_are_put_back(number):
    def handler(*_):
        raise KeyboardInterrupt

    def waits():
        with Uninterrupted():
            signal.raise_signal(number)
            done.append(1)
        done.append(2)
    done, before = [], {n: signal.signal(n, handler) for n in (signal.SIGINT, signal.SIGALRM)}
    try:
        with pytest.raises(KeyboardInterrupt):
            waits()
        assert done == [1]
        assert all(signal.getsignal(n) is handler for n in before)
        folder = os.path.dirname(interrupts.__file__)
        k = 1
        while interrupted(k, waits, os.path.join(folder, "interrupts")):  # stopped while they are exchanged: the others come back, too
            assert all(signal.getsignal(n) is handler for n in before)
            del done[:]
            k += 1
            if k > 200:
                break
    finally:
        for n, f in before.items():
            signal.signal(n, f)
