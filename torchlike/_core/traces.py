"""The traces of JAX's that a program's own code runs under: functions in `jax.jit`, `jax.grad`, `jax.vmap`."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from .jax_settings import engine_settings

_ZERO = np.float32(0)
_trace: Any = None  # says which trace there is
_none: Any = None  # what it says where there is none


class _Thread(threading.local):
    is_called_back = False


_thread = _Thread()


def is_clean() -> bool:
    """Whether there is none."""
    if _none is None:
        _ask_jax()
    return _trace(convention="torchlike") == _none


def _ask_jax() -> None:
    global _trace, _none
    from jax.extend.core import get_opaque_trace_state  # importing it takes 45 ms, a twentieth of `import torchlike`
    _trace = get_opaque_trace_state
    with jax.core.eval_context():
        _none = _trace(convention="torchlike")


@contextlib.contextmanager
def beside() -> Iterator[None]:
    """What JAX does here for the engine is done now, with numbers of 64 bits, whatever trace the user's code is under. A trace would take it as a part
    of the user's function, and a tensor of the code around would be left with a tracer."""
    with jax.core.eval_context(), engine_settings():
        yield


def is_staging() -> bool:
    """Whether the code that runs now is being written down (by jax.jit, jax.lax.scan, ...) to run any number of times later: then a sum of two
    numbers is, too."""
    return not is_clean() and isinstance(jax.lax.add(_ZERO, _ZERO), jax.core.Tracer)


@contextlib.contextmanager
def called_back() -> Iterator[None]:
    """What runs inside is called by a program that waits for it, on one of the threads that XLA runs programs on: it must not run another."""
    before, _thread.is_called_back = _thread.is_called_back, True
    try:
        yield
    finally:
        _thread.is_called_back = before


def is_called_back() -> bool:
    return _thread.is_called_back


@jax.custom_jvp
def unseen(old, new):
    """`new` in the place of `old`, whose derivative stays: a write that autograd does not see."""
    return new


unseen.defjvp(lambda values, changes: (values[1], changes[0]))
