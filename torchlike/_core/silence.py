"""NumPy without its warnings of overflows and divisions by zero: torch has none."""
from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


class _Silence(threading.local):
    def __init__(self) -> None:
        self.context = contextvars.Context()  # to enter one of our own costs a fifth of `np.errstate`, which every program would pay
        self.context.run(np.seterr, all="ignore")
        self.inside = False


_silence = _Silence()


def silently(f: Callable, *args: Any) -> Any:
    """f(*args), which changes no context variable, without NumPy's warnings."""
    silence = _silence
    if silence.inside:
        return f(*args)
    silence.inside = True
    try:
        return silence.context.run(f, *args)
    finally:
        silence.inside = False
