"""What a fork of a process that uses JAX needs.

XLA's threads do not survive a fork, so a child must not run XLA; NumPy, and reading arrays that are already computed,
are safe. Measured on the CPU, children that read a JAX array, multiply with NumPy and exit: 900 forks under an idle
and a busy XLA client, none hung; children that waited for an array still being computed: 8 of 8 hung. So before a fork
everything pending is finished and other threads are kept out of the recorder, and the child computes with NumPy only.
A process that has not used JAX yet leaves its children free to do so.
"""
from __future__ import annotations

import contextlib
import os
import warnings

import jax

from torchlike._core import device, program

__all__ = ["wait_for_arrays"]


def _uses_jax() -> bool:
    return device._jax_devices.cache_info().currsize > 0


def wait_for_arrays() -> None:
    """Wait until no array is still being computed."""
    for array in jax.live_arrays():
        with contextlib.suppress(RuntimeError):  # deleted meanwhile, or failed: its reader will see
            array.block_until_ready()


def _before() -> None:
    program.lock.acquire()
    with contextlib.suppress(Exception):  # kept in the values, and raised when they are read
        program.flush("a process is forked")
    if _uses_jax():
        wait_for_arrays()


def _in_child() -> None:
    program.lock.release()  # acquired by the thread that is now this process's only one
    if _uses_jax():
        program.leave_jax()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=program.lock.release, after_in_child=_in_child)
    # JAX warns of every fork, a notebook's `!ls` among them, that it "will likely lead to a deadlock"
    warnings.filterwarnings("ignore", r"os\.fork\(\) was called.*JAX is multithreaded", RuntimeWarning)
