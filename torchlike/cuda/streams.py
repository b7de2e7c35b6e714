"""Streams and events. XLA orders work on a GPU itself, so every stream is the one queue, and an event is a place in it."""
from __future__ import annotations

import contextlib
import functools
import time
from typing import Any

import jax

from .. import _streams as base
from .._core import device as dev
from .._core import program
from ._devices import index_of, need
from ._devices import jax_device as _jax_device


@functools.cache
def _step() -> Any:
    return jax.jit(lambda x: x + 1)


def _mark(index: int) -> jax.Array:
    """An array that is ready once everything recorded so far has run on the GPU."""
    program.flush("a CUDA event")
    return _step()(jax.device_put(0, _jax_device(index)))


class Stream(base.Stream):
    """The GPU's queue of work."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        need(RuntimeError, "torch.cuda.Stream requires CUDA support")
        self.device_index, self.priority = index_of(device), priority
        self.device = dev.device("cuda", self.device_index)

    cuda_stream = stream_id = 0

    def query(self) -> bool:
        """Whether all work is done."""
        return _mark(self.device_index).is_ready()

    def synchronize(self) -> None:
        """Wait for all work."""
        _mark(self.device_index).block_until_ready()

    def record_event(self, event: Event | None = None) -> Event:
        """An event at this place of the queue."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Nothing to do: later work waits for earlier work."""

    def wait_stream(self, stream: Stream) -> None:
        """Nothing to do: later work waits for earlier work."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash((Stream, self.device_index))

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event(base.Event):
    """A place in the GPU's queue. With enable_timing, recording it waits for the work before it: that makes times honest."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False) -> None:
        need(RuntimeError, "Tried to instantiate dummy base class Event")
        self._timed, self._mark, self._time = enable_timing, None, None

    def record(self, stream: Stream | None = None) -> None:
        """Put the event behind everything recorded so far."""
        self._mark = _mark(index_of(None) if stream is None else stream.device_index)
        if self._timed:
            self._mark.block_until_ready()
            self._time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to do: later work waits for earlier work."""

    def query(self) -> bool:
        """Whether the work before the event is done."""
        return self._mark is None or self._mark.is_ready()

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        if self._mark is not None:
            self._mark.block_until_ready()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another one."""
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return 1e3 * (end_event._time - self._time)


class StreamContext(contextlib.ContextDecorator):
    """A block whose work goes to a stream: the one there is."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def stream(stream: Stream | None) -> StreamContext:
    """A block whose work goes to a stream."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Nothing to choose: all streams of a GPU are its queue."""


def current_stream(device: Any = None) -> Stream:
    """The GPU's queue."""
    need()
    return Stream(device)


default_stream = current_stream


def synchronize(device: Any = None) -> None:
    """Wait until everything recorded so far has run on the GPU."""
    need()
    program.flush("torch.cuda.synchronize")
    for array in jax.live_arrays("cuda"):
        array.block_until_ready()
