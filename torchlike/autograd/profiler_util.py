"""What a profile found: events, their averages, and tables of them as PyTorch prints them."""
from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from typing import Any, Protocol

_TIMES = {"s": 1e6, "ms": 1e3, "us": 1.0}
_MEMORY = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_COLUMN, _BETWEEN = 12, "  "


class Interval:
    """Begin and end in microseconds since the profile began."""

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it took."""
        return self.end - self.start


class _Shown:
    """Times as text, and what is not collected: times of devices and call stacks (0 or empty, as in PyTorch where it was not asked for)."""

    device_time = cuda_time = 0.0
    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = 0
    device_memory_usage = self_device_memory_usage = 0
    is_async = is_remote = is_legacy = False
    node_id, use_device, overload_name = -1, None, ""

    @property
    def stack(self) -> list[str]:
        return []


for _name in ("cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total", "self_device_time_total"):
    setattr(_Shown, f"{_name}_str", property(lambda self, _name=_name: time_text(getattr(self, _name))))


class FunctionEvent(_Shown):
    """One operation, range or program that ran: its name and time, and what ran inside of it. `own_memory`: bytes of its results."""

    count = 1

    def __init__(self, name: str, start: float, end: float, is_user_annotation: bool = False, thread: int = 0, input_shapes: Iterable = (), own_memory: int = 0,
                 flops: int = 0):
        self.trace_name = name
        self.name = self.key = "ProfilerStep*" if name.startswith("ProfilerStep#") else name  # steps are averaged together
        self.time_range, self.is_user_annotation, self.thread = Interval(start, end), is_user_annotation, thread
        self.input_shapes, self.self_cpu_memory_usage, self.flops = list(input_shapes), own_memory, flops
        self.id = 0
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us()

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Without what ran inside of it."""
        return self.cpu_time_total - sum(e.cpu_time_total for e in self.cpu_children)

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes of its results, and of what ran inside of it."""
        return self.self_cpu_memory_usage + sum(e.cpu_memory_usage for e in self.cpu_children)

    def __repr__(self):
        return (f"<FunctionEvent id={self.id} name={self.name} overload_name= device_type=DeviceType.CPU node_id=-1 cpu_time={self.cpu_time_str} "
                f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} cpu_children={[e.id for e in self.cpu_children]} None_time=0.000us name={self.name} "
                f"thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} None_memory_usage=0 is_async=False is_remote=False "
                "seq_nr=-1 is_legacy=False>")


class FunctionEventAvg(_Shown):
    """Events of one name: how often, and how long together. `input_shapes` where they are averaged by these as well."""

    def __init__(self, key: str | None = None, input_shapes: Any = ""):
        self.key, self.input_shapes, self.is_user_annotation = key, input_shapes, False
        self.count = self.flops = self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    def add(self, e: FunctionEvent | FunctionEventAvg) -> None:
        """One more event, or several together."""
        if not self.count:
            self.cpu_parent, self.cpu_children = e.cpu_parent, e.cpu_children
        for name in ("count", "flops", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage"):
            setattr(self, name, getattr(self, name) + getattr(e, name))
        self.is_user_annotation = e.is_user_annotation

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    def __repr__(self):
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  self_cuda_time=0.000us cuda_time=0.000us "
                f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage=0>")


def nested(events: Iterable[FunctionEvent], **shown: bool) -> EventList:
    """The events in order, each with its number and those that ran inside of it."""
    around: list[FunctionEvent] = []
    made = EventList(sorted(events, key=lambda e: (e.thread, e.time_range.start, -e.time_range.end)), **shown)
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
    """Events, and tables of them, with columns for memory and floating point operations where these were asked for."""

    def __init__(self, events: Iterable = (), *, profile_memory: bool = False, with_flops: bool = False):
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """One FunctionEventAvg per name, or per name and shapes of inputs."""
        found: dict[tuple, FunctionEventAvg] = {}
        for e in self:
            shapes = e.input_shapes if group_by_input_shapes else ""
            found.setdefault((e.key, str(shapes)), FunctionEventAvg(e.key, shapes)).add(e)
        return EventList(found.values(), profile_memory=self._profile_memory, with_flops=self._with_flops)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return sum(e.self_cpu_time_total for e in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int | None = 55,
              max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None) -> str:
        """A text table, a row per event or average; `sort_by`: an attribute of these, the largest first. AttributeError where there is none of that name."""
        if not self:
            return ""
        rows = list(self) if sort_by is None else sorted(self, key=lambda e: getattr(e, sort_by), reverse=True)
        total = self.self_cpu_time_total
        columns = [_names(rows, max_name_column_width), _Column("Self CPU %", lambda e: _share(e.self_cpu_time_total, total)),
                   _Column("Self CPU", lambda e: time_text(e.self_cpu_time_total, time_unit)), _Column("CPU total %", lambda e: _share(e.cpu_time_total, total)),
                   _Column("CPU total", lambda e: time_text(e.cpu_time_total, time_unit)), _Column("CPU time avg", lambda e: time_text(e.cpu_time, time_unit))]
        if self._profile_memory:
            columns += [_Column("CPU Mem", lambda e: memory_text(e.cpu_memory_usage)), _Column("Self CPU Mem", lambda e: memory_text(e.self_cpu_memory_usage))]
        columns.append(_Column("# of Calls", lambda e: str(e.count)))
        if any(e.input_shapes for e in rows):
            widest = min(max(len(str(e.input_shapes)) for e in rows) + 4, max_shapes_column_width)
            columns.append(_Column("Input Shapes", lambda e: str(e.input_shapes)[:widest], widest))
        if self._with_flops:
            columns.append(_flops(rows))
        shown = [e for e in rows if not top_level_events_only or e.cpu_parent is None]
        lines = [_line(columns, lambda c: "-" * c.width), _line(columns, lambda c: c.title), _line(columns, lambda c: "-" * c.width)]
        lines += [_line(columns, lambda c, e=e: c.text(e)) for e in (shown if row_limit < 0 else shown[:row_limit])]
        rule = "=" * (len(lines[0]) - len(_BETWEEN))
        above = [rule, header, rule] if header is not None else []
        if top_level_events_only:
            above.append("This report only display top-level ops statistics")
        return "\n".join([*above, *lines, lines[0], f"Self CPU time total: {time_text(total, time_unit)}", ""])

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str, **metadata: Any) -> None:
        """The events as a JSON file for chrome://tracing, compressed where its name ends in .gz."""
        rows = [{"name": e.trace_name, "ph": "X", "cat": "user_annotation" if e.is_user_annotation else "cpu_op", "ts": e.time_range.start,
                 "dur": e.cpu_time_total, "pid": os.getpid(), "tid": e.thread, **({"args": {"Input Dims": e.input_shapes}} if e.input_shapes else {})} for e in self]
        with (gzip.open if path.endswith(".gz") else open)(path, "wt") as f:
            json.dump({"schemaVersion": 1, **metadata, "traceEvents": rows}, f)

    def total_average(self) -> FunctionEventAvg:
        """All events together."""
        total = FunctionEventAvg("Total")
        for e in self:
            total.add(e)
        return total


# -- the columns of a table ----------------------------------------------------------------------------------------------------


class _Text(Protocol):
    def __call__(self, e: Any) -> str: ...


class _Column:
    def __init__(self, title: str, text: _Text, width: int = _COLUMN):
        self.title, self.text, self.width = title, text, width


def _line(columns: list[_Column], text: Any) -> str:
    return "".join(text(c).rjust(c.width) + _BETWEEN for c in columns)


def _names(rows: list, most: int | None) -> _Column:
    width = max(len(e.key) for e in rows) + 4
    if most is not None:
        width = min(width, most)

    def text(e) -> str:
        return e.key if most is None or len(e.key) < most - 3 else e.key[:most - 3] + "..."
    return _Column("Name", text, width)


def _flops(rows: list) -> _Column:
    """In the unit of the fewest."""
    found = [e.flops for e in rows if e.flops > 0]
    scale = min((len(str(min(found))) - 1) // 3, len(_FLOPS) - 1) if found else 0
    return _Column(f"Total {_FLOPS[scale]}", lambda e: f"{e.flops / 1000**scale:8.3f}" if e.flops > 0 else "--")


def _share(time: float, total: float) -> str:
    return f"{time * 100 / total:.2f}%" if total else "NaN" if time else "0.00%"


def time_text(us: float, unit: str | None = None) -> str:
    """Microseconds in the unit, or in the one that suits."""
    if unit is not None:
        return f"{us / _TIMES[unit]:.3f}{unit}"
    unit = next((name for name, size in _TIMES.items() if us >= size), "us")
    return f"{us / _TIMES[unit]:.3f}{unit}"


def memory_text(n: int) -> str:
    """Bytes in the unit that suits."""
    return next((f"{n / size:.2f} {name}" for name, size in _MEMORY if abs(n) >= size), f"{n} B")
