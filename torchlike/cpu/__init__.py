"""torch.cpu: the CPU under the names that accelerators have."""
from __future__ import annotations

import contextlib
from typing import Any

from .._core import program
from . import amp  # noqa: F401
from .capabilities import (  # noqa: F401
    _is_amx_fp16_supported,
    _is_amx_tile_supported,
    _is_avx2_supported,
    _is_avx512_bf16_supported,
    _is_avx512_supported,
    _is_vnni_supported,
    get_capabilities,
)

__all__ = ["Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "get_capabilities", "is_available", "is_initialized", "set_device",
           "stream", "synchronize"]

_NAME = "cpu"


def is_available() -> bool:
    """There is always a CPU."""
    return True


def is_initialized() -> bool:
    """There is always a CPU."""
    return True


def device_count() -> int:
    """One device, whatever its cores."""
    return 1


def current_device() -> str:
    """The device's name."""
    return _NAME


def set_device(device: Any) -> None:
    """Nothing to choose."""


def synchronize(device: Any = None) -> None:
    """Run what is pending."""
    program.flush("torch.cpu.synchronize")


class Stream:
    """The CPU's one queue of work."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing to do: later work waits for earlier work."""

    def record_event(self) -> None:
        """Nothing to mark."""

    def wait_event(self, event: Any) -> None:
        """Nothing to do: later work waits for earlier work."""


class Event:
    """A place in the CPU's queue, always reached."""

    def query(self) -> bool:
        """All work before it is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing to mark."""

    def synchronize(self) -> None:
        """Run what is pending."""
        program.flush("torch.cpu.Event.synchronize")

    def wait(self, stream: Any = None) -> None:
        """Nothing to do."""


_default = Stream()
_current = [_default]


def current_stream(device: Any = None) -> Stream:
    """The stream selected by the innermost `stream` block."""
    return _current[-1]


class StreamContext(contextlib.AbstractContextManager):
    """A block in which current_stream answers the given stream."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        _current.append(_current[-1] if self.stream is None else self.stream)

    def __exit__(self, *exc: object) -> None:
        _current.pop()


def stream(stream: Stream | None) -> StreamContext:
    """A block in which current_stream answers the given stream."""
    return StreamContext(stream)
