"""torch.monitor: counters that are reported once per window of time, and events that handlers are told of."""
from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ._core.errors import class_name

if TYPE_CHECKING:
    from .utils.tensorboard import SummaryWriter

STAT_EVENT = "torch.monitor.Stat"
data_value_t = str | float | int | bool  # what an event's data may be
_handlers: list[EventHandlerHandle] = []
_lock = threading.RLock()


class Aggregation(enum.Enum):
    """What a Stat says of the values of a window. VALUE says nothing, as in PyTorch."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation


class Event:
    """Something that happened: a name, a time, and data. TypeError for other kinds of values."""

    def __init__(self, name: str, timestamp: datetime, data: Mapping[str, data_value_t]) -> None:
        if not isinstance(name, str) or not isinstance(timestamp, datetime) or not isinstance(data, Mapping):
            raise TypeError(f"Event(): expected a str, a datetime and a dict, got {class_name(name)}, {class_name(timestamp)} and {class_name(data)}")
        for key, value in data.items():
            if not isinstance(key, str) or not isinstance(value, (str, float, int)):
                raise TypeError(f"Event(): data has to be of str, float, int or bool, got {class_name(value)} at {key!r}")
        self.name, self.timestamp = name, timestamp
        self.data = {key: float(value) if isinstance(value, bool) else value for key, value in data.items()}


class EventHandlerHandle:
    """What `unregister_event_handler` takes."""

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self._handler = handler


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """callback(event) is called at each event from now on."""
    if not callable(callback):
        raise TypeError(f"register_event_handler(): argument 'callback' has to be callable, not {class_name(callback)}")
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """End what `register_event_handler` began; once more changes nothing."""
    with _lock:
        if handler in _handlers:
            _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Tell all handlers, in the order in which they were registered."""
    if not isinstance(event, Event):
        raise TypeError(f"log_event(): argument 'event' must be Event, not {class_name(event)}")
    with _lock:
        told = list(_handlers)
    for handle in told:
        handle._handler(event)


_OF_VALUES: dict[Aggregation, Callable[[list[float]], float]] = {
    Aggregation.MEAN: lambda values: sum(values) / len(values) if values else 0.0, Aggregation.COUNT: lambda values: float(len(values)),
    Aggregation.SUM: lambda values: float(sum(values)), Aggregation.MAX: lambda values: max(values, default=0.0), Aggregation.MIN: lambda values: min(values, default=0.0)}


class Stat:
    """Aggregates values over windows of `window_size`. A window is over when a value comes after its time, or with `max_samples` values (then more
    are left out until its time is over); an event `torch.monitor.Stat` says so, with `<name>.<aggregation>` for each, if it had any."""

    def __init__(self, name: str, aggregations: Iterable[Aggregation], window_size: timedelta, max_samples: int = 2**63 - 1) -> None:
        if isinstance(window_size, (int, float)):
            window_size = timedelta(seconds=window_size)
        aggregations = list(aggregations)
        if not isinstance(name, str) or not isinstance(window_size, timedelta) or not all(isinstance(a, Aggregation) for a in aggregations):
            raise TypeError("Stat(): expected a name, a list of Aggregation and a timedelta")
        self._name, self._wanted, self._size, self._most = name, [a for a in Aggregation if a in aggregations and a in _OF_VALUES], window_size, int(max_samples)
        self._values: list[float] = []
        self._last: list[float] = []
        self._full = False
        self._lock = threading.Lock()
        self._window = self._now()

    name = property(lambda self: self._name)

    @property
    def count(self) -> int:
        """How many values the current window has."""
        return len(self._values)

    def _now(self) -> int:
        """The number of the window that it is time for."""
        return int(time.monotonic() / max(self._size.total_seconds(), 1e-9))

    def add(self, v: float) -> None:
        """Add a value."""
        if not hasattr(type(v), "__float__") and not hasattr(type(v), "__index__"):
            raise TypeError(f"add(): argument 'v' must be a number, not {class_name(v)}")
        with self._lock:
            now, over = self._now(), []
            if now > self._window:
                self._window, self._full = now, False
                over.append(self._end())
            if not self._full:
                self._values.append(float(v))
                if len(self._values) >= self._most:
                    self._full = True
                    over.append(self._end())
        for values in over:
            self._log(values)

    def _end(self) -> list[float]:
        self._last, self._values = self._values, []
        return self._last

    def _log(self, values: list[float]) -> None:
        if values:
            log_event(Event(STAT_EVENT, datetime.now(), {f"{self._name}.{a.name.lower()}": _OF_VALUES[a](values) for a in self._wanted}))

    def get(self) -> dict[Aggregation, float]:
        """What the last window that is over had."""
        with self._lock:
            return {a: _OF_VALUES[a](self._last) for a in self._wanted}

    def __del__(self) -> None:
        values = getattr(self, "_values", None)
        if values:
            self._values = []
            self._log(values)


class TensorboardEventHandler:
    """An event handler that writes a Stat's events to a SummaryWriter, as scalars."""

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
