"""Tables of measurements: a row for each statement or sub-label, a column for each description."""
from __future__ import annotations

import enum
import math
from collections.abc import Iterable

from .measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

_GREEN, _GREENISH, _ORANGE, _RED, _BOLD, _PLAIN = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m", "\033[1m", "\033[0m\033[0m"


class Colorize(enum.Enum):
    """Which times are compared to find the best: none, those of a column, those of a row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _colored(text: str, time: float, best: float) -> str:
    if time <= best * 1.01 or time <= best + 100e-9:
        return _GREEN + _BOLD + text + _PLAIN
    if time <= best * 1.1:
        return _GREENISH + _BOLD + text + _PLAIN
    if time >= best * 5:
        return _RED + _BOLD + text + _PLAIN
    return _ORANGE + text + _PLAIN if time >= best * 2 else text


class Compare:
    """The table of measurements; str() gives it, print() prints it."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim, self._color, self._warn = False, Colorize.NONE, False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """More measurements."""
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
            self._results.append(r)

    def trim_significant_figures(self) -> None:
        """Show only digits that the spread supports."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Color good and bad times, by column or by row."""
        self._color = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that spread widely."""
        self._warn = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[str | None, list[Measurement]] = {}
        for m in Measurement.merge(self._results):
            groups.setdefault(m.label, []).append(m)
        return "\n".join(self._table(label, group) for label, group in groups.items())

    def _column(self, cells: list[Measurement | None], scale: float) -> list[str]:
        """The texts of a column, all with the decimals that its least certain time supports."""
        there = [m for m in cells if m is not None]
        digits = [math.ceil(math.log10(m.median / scale)) for m in there]
        decimals = min(max(m.significant_figures - d, 0) for m, d in zip(there, digits)) if self._trim else 1
        width = max(digits) + decimals + (decimals > 0)
        mark = 7 if self._warn and any(m.has_warnings for m in there) else 0

        def text(m: Measurement | None) -> str:
            if m is None:
                return " " * (width + mark)
            value = trim_sigfig(m.median / scale, m.significant_figures) if self._trim else m.median / scale
            spread = f" (! {m.iqr / m.median * 100:.0f}%)" if self._warn and m.has_warnings else ""
            return f"{value:>{width}.{decimals}f}{spread:>{mark}}"
        return [text(m) for m in cells]

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in results))
        columns = ordered_unique(m.description for m in results)
        rows = sorted(ordered_unique((m.num_threads, m.env, m.as_row_name) for m in results), key=lambda row: row[0])
        found = {(m.num_threads, m.env, m.as_row_name, m.description): m for m in results}
        cells = [[found.get((*row, column)) for column in columns] for row in rows]
        several = len({m.env for m in results}) > 1
        names = [f"  {f'({env})    ' if several else '    '}{name}" for _, env, name in rows]
        texts = [self._column([line[j] for line in cells], scale) for j in range(len(columns))]
        widths = [max(map(len, names))] + [max(len(str(column or "")), *map(len, column_texts)) for column, column_texts in zip(columns, texts)]
        lines = ["  |  ".join(str(head or "").center(w) for head, w in zip(["", *columns], widths))]
        overall = len(lines[0])
        for i, (threads, _, _) in enumerate(rows):
            if i == 0 or rows[i - 1][0] != threads:
                lines.append(f"{threads} threads: ".ljust(overall, "-"))
            lines.append("  |  ".join([names[i].ljust(widths[0]), *self._line(i, rows, cells, [t[i] for t in texts], widths[1:])]))
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" if self._warn and any(m.has_warnings for m in results) else ""
        title = f" {label or ''} ".center(overall - 2, "-")
        return f"[{title}]\n" + "\n".join(lines) + f"\n\nTimes are in {unit_to_english(unit)}s ({unit}).\n{note}"

    def _line(self, i: int, rows: list, cells: list, texts: list[str], widths: list[int]) -> list[str]:
        """One row's cells, centered and colored."""
        out = []
        for j, (text, width) in enumerate(zip(texts, widths)):
            text, m = text.center(width), cells[i][j]
            if m is not None and self._color is not Colorize.NONE:
                rivals = cells[i] if self._color is Colorize.ROWWISE else [line[j] for line, row in zip(cells, rows) if row[0] == rows[i][0]]
                text = _colored(text, m.median, min(r.median for r in rivals if r is not None))
            out.append(text)
        return out
