"""torch.Stream and torch.Event: queues of work and places in them, of any device. The CPU has one queue and no events."""
from __future__ import annotations

from typing import Any

from ._core import device as dev
from ._core.shown import Shown


def _device(device: Any) -> dev.device:
    kind = dev.device(("cuda" if dev.device_count("cuda") else "cpu") if device is None else device)
    if kind.type == "cuda" and not dev.device_count("cuda"):
        raise RuntimeError("PyTorch is not linked with support for cuda devices")
    return kind


def _cuda() -> Any:
    from .cuda import streams  # whose classes derive from these

    return streams


def _no_events(device: dev.device) -> None:
    if device.type == "cpu":
        raise RuntimeError("cpu backend doesn't support events.")


class Stream(metaclass=Shown):
    """The queue of work of a device."""

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        self.device = _device(device)
        self.device_index, self.stream_id, self.device_type = -1 if self.device.index is None else self.device.index, 0, self.device.type
        self._queue = _cuda().Stream(self.device, priority) if self.device.type == "cuda" else None

    def query(self) -> bool:
        """Whether all work is done."""
        return True if self._queue is None else self._queue.query()

    def synchronize(self) -> None:
        """Wait for all work."""
        if self._queue is not None:
            self._queue.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """An event at this place of the queue."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Nothing to do: later work waits for earlier work."""
        _no_events(self.device)

    def wait_stream(self, other: Stream) -> None:
        """Nothing to do: later work waits for earlier work."""
        _no_events(self.device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash((Stream, self.device_type, self.device_index))

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self.device_type}, device_index={self.device_index}, stream_id={self.stream_id}"


class Event(metaclass=Shown):
    """A place in the queue of a device."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.device, self._timed, self.event_id = _device(device), enable_timing, 0
        self._place = _cuda().Event(enable_timing) if self.device.type == "cuda" else None

    def record(self, stream: Stream | None = None) -> None:
        """Put the event behind everything recorded so far."""
        _no_events(self.device)
        self._place.record(None if stream is None else stream._queue)

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to do: later work waits for earlier work."""

    def query(self) -> bool:
        """Whether the work before the event is done."""
        return True if self._place is None else self._place.query()

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        if self._place is not None:
            self._place.synchronize()

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds from this event to another one."""
        if not (self._timed and other._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._place is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return self._place.elapsed_time(other._place)

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return f"torch.Event device_type={self.device.type}, device_index={index}, event_flag=0, event_id={self.event_id}"


Stream.__module__ = Event.__module__ = "torch"
