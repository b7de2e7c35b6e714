"""torch.cuda.nvtx: ranges that NVIDIA's profilers show. Here they are annotations of JAX's, which go the same way."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._devices import is_available

__all__ = ["range_push", "range_pop", "range_start", "range_end", "mark", "range"]


class _State(threading.local):
    def __init__(self) -> None:
        self.nested: list[Any] = []  # of this thread, the innermost last


_state = _State()
_started: dict[int, Any] = {}


def _annotation(msg: str) -> Any:
    if not is_available():
        raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")
    import jax
    made = jax.profiler.TraceAnnotation(msg)
    made.__enter__()
    return made


def range_push(msg: str) -> int:
    """Begin a range inside of those that are open; its depth, from 0."""
    _state.nested.append(_annotation(msg))
    return len(_state.nested) - 1


def range_pop() -> int:
    """End the innermost range; the depth it had."""
    if not _state.nested:
        if not is_available():
            raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")
        return -1
    _state.nested.pop().__exit__(None, None, None)
    return len(_state.nested)


def range_start(msg: str) -> int:
    """Begin a range that may overlap others; the number by which `range_end` ends it."""
    made = _annotation(msg)
    _started[id(made)] = made
    return id(made)


def range_end(range_id: int) -> None:
    """End a range of `range_start`."""
    made = _started.pop(range_id, None)
    if made is not None:
        made.__exit__(None, None, None)


def mark(msg: str) -> None:
    """A point in time."""
    _annotation(msg).__exit__(None, None, None)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """The block as a range; `msg` is formatted with what follows it."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
