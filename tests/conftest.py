"""Test configuration: one thread per worker, the two libraries as fixtures, and the counts of differing error messages.

TORCHLIKE_TEST_SUBJECT=torch runs every check with real torch on both sides: that shows that the table itself is right.
"""
import importlib
import os
import signal
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
_cache = None
if "PYTEST_XDIST_WORKER" not in os.environ and "TORCHLIKE_CACHE" not in os.environ:
    # one of this run's own, for all workers: what earlier runs compiled would decide which programs run in NumPy
    _cache = tempfile.TemporaryDirectory(prefix="torchlike-tests-")
    os.environ["TORCHLIKE_CACHE"] = _cache.name
for _path in (Path(__file__).parent, Path(__file__).parent.parent):
    if str(_path) not in sys.path:
        sys.path.insert(0, str(_path))

import pytest  # noqa: E402

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as background jobs of a shell start; tests of Ctrl-C send it to themselves and to children
    signal.signal(signal.SIGINT, signal.default_int_handler)

SUBJECT = os.environ.get("TORCHLIKE_TEST_SUBJECT", "torchlike")


def load_oracle() -> Any:
    import torch
    torch.set_num_threads(1)
    for backend in (torch.cuda.random, torch.xpu.random, torch.mtia):
        # without these devices, each manual_seed writes down the whole stack for the day they start: 1.5 ms under pytest
        backend._lazy_call = lambda call, **kind: None
    return torch


@pytest.fixture(scope="session")
def oracle() -> Any:
    """Real torch, the specification."""
    return load_oracle()


@pytest.fixture(scope="session")
def subject() -> Any:
    """The library under test."""
    return importlib.import_module(SUBJECT)


@pytest.fixture
def recorded(monkeypatch):
    """All operations are recorded: where the tests run with each at once, too, and those that other tests of this process made so usual that they
    would be computed at once."""
    from torchlike._core import program
    with program.immediate(False):
        monkeypatch.setattr(program.state, "whole", True)
        yield
        monkeypatch.setattr(program.state, "whole", False)


@pytest.fixture(autouse=True)
def _same_start(request):
    """No warnings, and settings as a fresh process has them: what one test leaves behind is not another's."""
    if "torch" in sys.modules:  # importing torch._dynamo, as some of torch's own functions do, turns this off
        sys.modules["torch"].distributions.Distribution.set_default_validate_args(True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    if {"oracle", "subject"} & set(request.fixturenames):
        for torch in {load_oracle(), importlib.import_module(SUBJECT)}:
            torch.set_grad_enabled(True)
            torch.set_default_dtype(torch.float32)
            torch.set_default_device(None)  # with any device set, real torch runs its functions under a mode


def pytest_unconfigure() -> None:
    if _cache is not None:
        _cache.cleanup()


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    """Messages that differ from torch's are counted, not failed."""
    import torch
    if exitstatus and torch.version.cuda:
        terminalreporter.write_line(f"real torch here is {torch.__version__}; tests of what it says without a GPU compare with its build for the CPU: "
                                    "pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu")
    words = [value for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
             for key, value in report.user_properties if key == "message"]
    if words:
        terminalreporter.write_line(f"{len(words)} error messages differ from torch's words; --messages lists them")
        if terminalreporter.config.getoption("--messages"):
            for text in words:
                terminalreporter.write_line(text)


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--messages", action="store_true", help="list error messages that differ from torch's")
