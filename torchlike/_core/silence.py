"""NumPy without its warnings of overflows and divisions by zero: torch has none."""
from __future__ import annotations

import contextvars
from collections.abc import Callable
from threading import get_ident
from typing import Any

import numpy as np


class _Silence:
    """A context of a thread's own: to enter it costs a fifth of `np.errstate`, which every program would pay."""

    __slots__ = ("run", "inside")

    def __init__(self) -> None:
        self.run = contextvars.Context().run
        self.run(np.seterr, all="ignore")
        self.inside = False


_of_thread: dict[int, _Silence] = {}  # a `threading.local` takes as long as a small operation


def silently(f: Callable, *args: Any) -> Any:
    """f(*args), which changes no context variable, without NumPy's warnings."""
    thread = get_ident()
    silence = _of_thread.get(thread)
    if silence is None:
        silence = _of_thread[thread] = _Silence()
    if silence.inside:
        return f(*args)
    silence.inside = True
    try:
        return silence.run(f, *args)
    finally:
        silence.inside = False
