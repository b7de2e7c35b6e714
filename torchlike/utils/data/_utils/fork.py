"""Starting processes from one that runs JAX.

XLA's threads do not survive a fork, so a forked child must not run XLA; NumPy, and reading arrays that are already
computed, are safe (900 forks under a busy XLA CPU client: no child hung; a child that waits for an array still being
computed always does). So the parent finishes what is pending, keeps other threads out of the recorder, and the child
computes with NumPy only.
"""
from __future__ import annotations

import contextlib
import gc
import multiprocessing.process
import sys
import warnings

import torchlike._core.program as program

__all__ = ["enter_worker", "start"]


def start(process: multiprocessing.process.BaseProcess) -> None:
    """`process.start()`, with the program recorder and JAX in a state that a forked child can inherit."""
    with program.lock:
        program.flush("a process starts")
        wait_for_arrays()
        with warnings.catch_warnings():
            # both Python (3.12) and JAX warn of forks beside threads, in general; here it was seen to
            warnings.filterwarnings("ignore", message=r".*os\.fork\(\).*", category=RuntimeWarning)
            warnings.filterwarnings("ignore", message=r".*fork\(\) may lead to deadlocks.*", category=DeprecationWarning)
            process.start()


def wait_for_arrays() -> None:
    """Wait until no JAX array is still being computed."""
    jax = sys.modules.get("jax")
    if jax is not None:
        for array in jax.live_arrays():
            with contextlib.suppress(RuntimeError):  # deleted meanwhile
                array.block_until_ready()


def enter_worker(forked: bool) -> None:
    """First thing in a worker process: from here on, NumPy only."""
    if forked:
        program.lock.release()  # held since `start`, by the thread that is this process's only one
        gc.freeze()  # no collection here frees what the parent made: JAX arrays among it, and pages they share
    program.numpy_only()
