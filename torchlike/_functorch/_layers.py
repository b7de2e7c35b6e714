"""The transforms that are open: calls of vmap (a Trace each), levels of backward differentiation and of forward differentiation."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class _State(threading.local):
    def __init__(self) -> None:
        self.open: list[Any] = []  # of this thread, the innermost last; the number of the first is 1


state = _State()


@contextlib.contextmanager
def opened(layer: Any) -> Iterator[None]:
    """While a function runs under a transform."""
    state.open.append(layer)
    try:
        yield
    finally:
        state.open.pop()
