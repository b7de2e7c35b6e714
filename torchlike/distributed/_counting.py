"""Who counts the collectives that this thread starts, by the names of PyTorch's operators. Where nobody does, nothing is asked."""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any


class _State(threading.local):
    def __init__(self) -> None:
        self.watchers: list[Callable[[str], None]] = []


state = _State()


def tell(name: str) -> None:
    """A collective begins: `c10d_functional.all_reduce`."""
    for watcher in list(state.watchers):
        watcher(name)


def counted(name: str, kernel: Callable) -> Callable:
    """The kernel of a collective that others make: it counts, they do not."""
    @functools.wraps(kernel)
    def run(*args: Any, **kwargs: Any) -> Any:
        watchers = state.watchers
        if not watchers:
            return kernel(*args, **kwargs)
        tell(name)
        state.watchers = []
        try:
            return kernel(*args, **kwargs)
        finally:
            state.watchers = watchers
    return run
