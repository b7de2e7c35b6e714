"""What was timed, and the times."""
from __future__ import annotations

import contextlib
import math
import statistics
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..._public import FUNCTIONS as F

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english"]

_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1, "second")}
_SHAKY, _UNUSABLE = 0.1, 0.25  # of the median: interquartile ranges that deserve a warning


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which to show t seconds, and its size."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.log10(t) // 3, "s")
    return unit, _UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """A unit's name in full."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """x with n significant digits."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The different elements, in the order of their first."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """torch.set_num_threads(n) for a block."""
    before = F["get_num_threads"]()
    F["set_num_threads"](n)
    try:
        yield
    finally:
        F["set_num_threads"](before)


def _block(head: str, code: str) -> str:
    return f"{head}\n{textwrap.indent(code, '  ')}"


@dataclass(frozen=True)
class TaskSpec:
    """A statement and how to call it in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Label and sub-label, or the statement."""
        if not self.label and "\n" in self.stmt:
            return _block(f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}", self.stmt)
        return f"{self.label or self.stmt}{f': {self.sub_label}' if self.sub_label else ''}"

    def setup_str(self) -> str:
        """The setup as it is shown; nothing for a plain one."""
        if self.setup == "pass" or not self.setup:
            return ""
        return _block("setup:", self.setup) if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup."""
        parts = (self.title, self.description or "", self.setup_str())
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


class Measurement:
    """Seconds of several blocks of `number_per_run` runs. A task's fields are read from here as well."""

    def __init__(self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec, metadata: dict | None = None) -> None:
        self.number_per_run, self.raw_times, self.task_spec, self.metadata = number_per_run, raw_times, task_spec, metadata

    def __getattr__(self, name: str) -> Any:
        if name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds of one run, by block."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean time of one run."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median time of one run."""
        return statistics.median(self.times)

    def _quartiles(self) -> tuple[float, float]:
        if len(self.times) < 2:
            return self.times[0], self.times[0]
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return low, high

    @property
    def iqr(self) -> float:
        """The distance of the quartiles."""
        low, high = self._quartiles()
        return high - low

    @property
    def significant_figures(self) -> int:
        """How many digits of the median the spread of the middle half supports: 1 to 4."""
        times, n = sorted(self.times), len(self.raw_times)
        middle = times[n // 4:math.ceil(3 * n / 4)]
        error = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), 25e-9)
        return min(max(math.floor(math.log10(self.median / error)), 1), 4)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread so far that a warning is shown."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _SHAKY) -> bool:
        """Whether the quartiles are closer than that part of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The task's."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """Its name in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        (unit, scale), (low, high), n = select_unit(self.median), self._quartiles(), len(self.raw_times)
        lines = [f"<torch.utils.benchmark.utils.common.Measurement object at {hex(id(self))}>", self.task_spec.summarize(),
                 f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}"]
        if n >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        lines.append(f"  {n} measurement{'s' * (n > 1)}, {self.number_per_run} runs {'per measurement,' if n > 1 else ','} "
                     f"{self.num_threads} thread{'s' * (self.num_threads > 1)}")
        if self.has_warnings:
            why = "This could indicate system fluctuation." if self.meets_confidence(_UNUSABLE) else "This suggests significant environmental influence."
            lines.append(f"  WARNING: Interquartile range is {self.iqr / self.median:.1%} of the median measurement.\n           {why}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, of single runs."""
        groups: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, task) for task, times in groups.items()]
