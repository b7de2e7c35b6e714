"""torch.autograd.profiler: wall time of `record_function` ranges, and the user lines where programs ran.

Operations run inside whole programs, so single ones have no time of their own; `jax.profiler` shows XLA's kernels. While a
profile is on, a range ends its program, so that its time is that of its work.
"""
from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from .._core import history, program

__all__ = ["EventList", "emit_itt", "emit_nvtx", "profile", "record_function"]

_active: list[profile] = []


def is_running() -> bool:
    """Whether a profiler collects what happens."""
    return bool(_active)


class Interval:
    """Begin and end in microseconds since the profile began."""

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it took."""
        return self.end - self.start


class _Shown:
    """Times as text, and what is not collected: times of devices, memory, shapes, FLOP and call stacks (0 or empty, as in PyTorch where it was not asked for)."""

    device_time = cuda_time = 0.0
    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = 0
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = flops = 0
    is_async = is_remote = is_legacy = False
    node_id, use_device, overload_name = -1, None, ""

    @property
    def stack(self) -> list[str]:
        return []


for _name in ("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total", "self_device_time_total"):
    setattr(_Shown, f"{_name}_str", property(lambda self, _name=_name: _time(getattr(self, _name))))


class Event(_Shown):
    """One range, or one program that ran: its name and time, and the ranges and programs inside of it."""

    count = 1

    def __init__(self, name: str, start: float, end: float, is_user_annotation: bool = True, thread: int = 0):
        self.trace_name = name
        self.name = self.key = "ProfilerStep*" if name.startswith("ProfilerStep#") else name  # steps are averaged together
        self.time_range, self.is_user_annotation, self.thread = Interval(start, end), is_user_annotation, thread
        self.id = 0
        self.cpu_parent: Event | None = None
        self.cpu_children: list[Event] = []

    @property
    def input_shapes(self) -> list:
        return []

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us()

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Without what ran inside of it."""
        return self.cpu_time_total - sum(e.cpu_time_total for e in self.cpu_children)

    def __repr__(self):
        return f"<{type(self).__name__} id={self.id} name={self.name} cpu_time={_time(self.cpu_time)} thread={self.thread}>"


class EventAverage(_Shown):
    """Ranges of one name: how often, and how long together."""

    def __init__(self, key: str):
        self.key, self.count, self.cpu_time_total, self.self_cpu_time_total, self.is_user_annotation = key, 0, 0.0, 0.0, False

    @property
    def input_shapes(self) -> str:
        return ""

    def add(self, e: Event | EventAverage) -> None:
        """One more event, or several together."""
        self.count += e.count
        self.cpu_time_total += e.cpu_time_total
        self.self_cpu_time_total += e.self_cpu_time_total
        self.is_user_annotation = e.is_user_annotation

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    def __repr__(self):
        return f"<{type(self).__name__} key={self.key} self_cpu_time={_time(self.self_cpu_time_total)} cpu_time={_time(self.cpu_time)}>"


def _nested(events: list[Event]) -> EventList:
    """The events in order, each with its number and those that ran inside of it."""
    around: list[Event] = []
    made = EventList(sorted(events, key=lambda e: (e.thread, e.time_range.start, -e.time_range.end)))
    for i, e in enumerate(made):
        e.id = i
        while around and (around[-1].thread != e.thread or around[-1].time_range.end < e.time_range.end):
            around.pop()
        if around:
            e.cpu_parent = around[-1]
            around[-1].cpu_children.append(e)
        around.append(e)
    return made


class EventList(list):
    """Events, and tables of them."""

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """One EventAverage per name."""
        found: dict[str, EventAverage] = {}
        for e in self:
            found.setdefault(e.key, EventAverage(e.key)).add(e)
        return EventList(found.values())

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return sum(e.self_cpu_time_total for e in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
              max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None) -> str:
        """A text table: name, CPU time without and with what ran inside, mean CPU time, calls."""
        rows = list(self.key_averages())
        if sort_by is not None:
            by = sort_by if sort_by in ("count", "cpu_time", "self_cpu_time_total") else "cpu_time_total"
            rows.sort(key=lambda r: getattr(r, by), reverse=True)
        head = ("Name", "Self CPU", "CPU total", "CPU time avg", "# of Calls")
        body = [(r.key[:max_name_column_width], *(_time(t, time_unit) for t in (r.self_cpu_time_total, r.cpu_time_total, r.cpu_time)), str(r.count))
                for r in (rows if row_limit < 0 else rows[:row_limit])]
        widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
        rule = "  ".join("-" * w for w in widths)
        lines = [rule, "  ".join(h.rjust(w) for h, w in zip(head, widths)), rule]
        lines += ["  ".join(c.rjust(w) for c, w in zip(row, widths)) for row in body]
        return "\n".join([*([header] if header else []), *lines, rule, f"Self CPU time total: {_time(self.self_cpu_time_total, time_unit)}", ""])

    __str__ = table

    def export_chrome_trace(self, path: str, **metadata: Any) -> None:
        """The ranges as a JSON file for chrome://tracing, compressed where its name ends in .gz."""
        rows = [{"name": e.trace_name, "ph": "X", "cat": "user_annotation" if e.is_user_annotation else "cpu_op", "ts": e.time_range.start,
                 "dur": e.cpu_time_total, "pid": os.getpid(), "tid": e.thread} for e in self]
        with (gzip.open if path.endswith(".gz") else open)(path, "wt") as f:
            json.dump({"schemaVersion": 1, **metadata, "traceEvents": rows}, f)

    def total_average(self) -> EventAverage:
        """All events together."""
        total = EventAverage("Total")
        for e in self:
            total.add(e)
        return total


def _time(us: float, unit: str | None = None) -> str:
    if unit is not None:
        return f"{us / {'s': 1e6, 'ms': 1e3, 'us': 1.0}[unit]:.3f}{unit}"
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


class profile:
    """Context manager that collects `record_function` ranges, and one event per program that ran, named by its user line."""

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        self.enabled, self.options = enabled, options
        self.function_events: EventList | None = None

    def __enter__(self) -> profile:
        if self.enabled:
            program.flush("profile begins")
            self.events_: list[Event] = []
            self.noted = 0.0
            self.began, self.last = time.perf_counter(), history.entries[-1] if history.entries else None
            _active.append(self)
        return self

    def __exit__(self, *exc) -> None:
        if self.enabled and self in _active:
            program.flush("profile ends")
            _active.remove(self)
            self.note_programs()
            self.function_events = _nested(self.events_)

    def note_programs(self) -> None:
        """Programs that ran since somebody asked last, one after the other up to now."""
        last, end = self.last, self.now()
        self.last = history.entries[-1] if history.entries else None
        for e in itertools.takewhile(lambda e: e is not last, reversed(history.entries)):
            start = max(end - e.seconds * 1e6, self.noted)
            self.events_.append(Event(f"program at {history.shown(e.place)} ({e.how})", start, end, False, threading.get_ident()))
            end = start
        self.noted = self.now()

    def now(self) -> float:
        """Microseconds since the beginning."""
        return (time.perf_counter() - self.began) * 1e6

    def events(self) -> EventList:
        """All events of a finished profile."""
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, *rest) -> EventList:
        """Events averaged by name."""
        return self.events().key_averages()

    def table(self, *args, **kwargs) -> str:
        """`key_averages().table(...)`."""
        return self.events().table(*args, **kwargs)

    def export_chrome_trace(self, path: str, **metadata: Any) -> None:
        """The events as a JSON file for chrome://tracing."""
        self.events().export_chrome_trace(path, **metadata)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return self.events().self_cpu_time_total

    def total_average(self) -> EventAverage:
        """All events together."""
        return self.events().total_average()

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)


class record_function:
    """A named range, as a context manager or a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        if _active:
            program.flush("record_function")
            self.starts = []
            for p in _active:
                p.note_programs()
                self.starts.append((p, p.now()))
        else:
            self.starts = []
        return self

    def __exit__(self, *exc) -> None:
        if self.starts:
            if exc[0] is None:
                program.flush("record_function")
            for p, start in self.starts:
                p.note_programs()
                p.events_.append(Event(self.name, start, p.now(), True, threading.get_ident()))

    def __call__(self, func: Callable) -> Callable:
        @functools.wraps(func)
        def run(*args, **kwargs):
            with record_function(self.name, self.args):
                return func(*args, **kwargs)
        return run


class _NoOutside:
    """emit_nvtx and emit_itt: annotations for tools that see no XLA program; accepted, without effect."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> _NoOutside:
        return self

    def __exit__(self, *exc) -> None:
        return None


class emit_nvtx(_NoOutside):
    """Accepted, without effect."""


class emit_itt(_NoOutside):
    """Accepted, without effect."""
