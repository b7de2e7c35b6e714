"""torch.autograd.profiler: wall time of `record_function` ranges, and the user lines where programs ran.

Operations run inside whole programs, so single ones have no time of their own; `jax.profiler` shows XLA's kernels. While a
profile is on, a range ends its program, so that its time is that of its work.
"""
from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from typing import Any

from .._core import history, program

__all__ = ["EventList", "emit_itt", "emit_nvtx", "profile", "record_function"]

_active: list[profile] = []


class Event:
    """One range: name, begin and end in microseconds since the profile began."""

    def __init__(self, name: str, start: float, end: float):
        self.name = self.key = name
        self.start, self.end = start, end

    @property
    def cpu_time_total(self) -> float:
        return self.end - self.start


class EventAverage:
    """Ranges of one name: how often, and how long together."""

    def __init__(self, key: str):
        self.key, self.count, self.cpu_time_total = key, 0, 0.0

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count

    self_cpu_time_total = property(lambda self: self.cpu_time_total)


class EventList(list):
    """Events, and tables of them."""

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """One EventAverage per name."""
        found: dict[str, EventAverage] = {}
        for e in self:
            average = found.setdefault(e.key, EventAverage(e.key))
            average.count += getattr(e, "count", 1)
            average.cpu_time_total += e.cpu_time_total
        return EventList(found.values())

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
              max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None) -> str:
        """A text table: name, total and mean CPU time, calls."""
        rows = list(self.key_averages())
        if sort_by is not None:
            rows.sort(key=lambda r: r.count if sort_by == "count" else r.cpu_time_total, reverse=True)
        head = ("Name", "CPU total", "CPU time avg", "# of Calls")
        body = [(r.key[:max_name_column_width], _time(r.cpu_time_total), _time(r.cpu_time), str(r.count)) for r in rows[:max(row_limit, 0)]]
        widths = [max(len(row[i]) for row in [head, *body]) for i in range(4)]
        rule = "  ".join("-" * w for w in widths)
        lines = [rule, "  ".join(h.rjust(w) for h, w in zip(head, widths)), rule]
        lines += ["  ".join(c.rjust(w) for c, w in zip(row, widths)) for row in body]
        return "\n".join([*([header] if header else []), *lines, rule, ""])

    __str__ = table

    def export_chrome_trace(self, path: str) -> None:
        """The ranges as a JSON file for chrome://tracing."""
        rows = [{"name": e.name, "ph": "X", "ts": e.start, "dur": e.end - e.start, "pid": 0, "tid": 0} for e in self]
        with open(path, "w") as f:
            json.dump({"traceEvents": rows}, f)

    def total_average(self) -> EventAverage:
        """All events together."""
        total = EventAverage("Total")
        for e in self:
            total.count += 1
            total.cpu_time_total += e.cpu_time_total
        return total


def _time(us: float) -> str:
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
            self.began, self.first = time.perf_counter(), len(history.entries)
            _active.append(self)
        return self

    def __exit__(self, *exc) -> None:
        if self.enabled and self in _active:
            program.flush("profile ends")
            _active.remove(self)
            now = self.now()
            ran = [Event(f"program at {history.shown(e.place)} ({e.how})", now - e.seconds * 1e6, now) for e in list(history.entries)[self.first:]]
            self.function_events = EventList([*self.events_, *ran])

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

    def export_chrome_trace(self, path: str) -> None:
        """The events as a JSON file for chrome://tracing."""
        self.events().export_chrome_trace(path)

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
            self.starts = [(p, p.now()) for p in _active]
        else:
            self.starts = []
        return self

    def __exit__(self, *exc) -> None:
        if self.starts:
            if exc[0] is None:
                program.flush("record_function")
            for p, start in self.starts:
                p.events_.append(Event(self.name, start, p.now()))

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
