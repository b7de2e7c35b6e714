"""Loaders that start processes of their own (torchdata's): what a process does to become a worker, and how its end is noticed.

PyTorch's workers tell by handlers in C which signal ends them; here the parent asks the system how they ended.
"""
from __future__ import annotations

import gc
import os
import signal
import threading
from types import FrameType
from typing import Any

from torchlike._core import program

from .endings import reason

__all__: list[str] = []

_SIGCHLD_handler_set = False
_workers: dict[int, tuple[int, ...]] = {}  # by loader: its processes


def _set_worker_signal_handlers() -> None:
    """Make this process a worker: it computes with NumPy only, since XLA's threads do not survive a fork."""
    program.leave_jax()
    gc.freeze()  # no collection here frees what the parent made: JAX arrays among it, and pages they share
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the parent's own handler means the parent


def _set_worker_pids(loader_id: int, worker_pids: tuple[int, ...]) -> None:
    """Watch the processes of a loader."""
    if not isinstance(worker_pids, tuple):
        raise TypeError(f"_set_worker_pids expects a tuple for child_pids, but got {type(worker_pids).__name__}.")
    if loader_id in _workers:
        raise ValueError("_set_worker_pids should be called only once for each _BaseDataLoaderIter.")
    _workers[loader_id] = tuple(int(pid) for pid in worker_pids)


def _remove_worker_pids(loader_id: int) -> None:
    """Watch them no longer."""
    if loader_id not in _workers:
        raise ValueError("Cannot find worker information for _BaseDataLoaderIter with id " + str(loader_id))
    del _workers[loader_id]


def _error_if_any_worker_fails() -> None:
    """Raise RuntimeError for a watched process that ended otherwise than by itself; those of its loader are watched no longer."""
    for loader_id, pids in _workers.items():
        for pid in pids:
            code = _exit_code(pid)
            if code:
                _workers[loader_id] = ()
                raise RuntimeError(reason(pid, code))


def _exit_code(pid: int) -> int | None:
    """How a child of this process ended (a signal as a negative number), None while it runs. It can still be waited for."""
    try:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # waited for already
        return None
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _set_SIGCHLD_handler() -> None:
    """Look after the watched processes whenever a child of this process ends; a handler that was there is called, too."""
    global _SIGCHLD_handler_set
    if _SIGCHLD_handler_set or not hasattr(signal, "SIGCHLD") or threading.current_thread() is not threading.main_thread():
        return
    before: Any = signal.getsignal(signal.SIGCHLD)

    def handler(number: int, frame: FrameType | None) -> None:
        _error_if_any_worker_fails()
        if callable(before):
            before(number, frame)
    signal.signal(signal.SIGCHLD, handler)
    _SIGCHLD_handler_set = True
