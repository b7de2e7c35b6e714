"""Loops that look at no value: where their programs end, so that the same programs return.

Programs that end by their length alone would begin each time elsewhere in a loop's body, so none would be seen twice. The period of
what was recorded says after how many results a program is back where it began.
"""
from __future__ import annotations

from collections import deque

KEPT = 4  # longest programs whose operations are remembered: a period is seen twice
SHORT = 256  # results of a program at least, where a body is shorter: starting one costs little then


class Loop:
    """Programs that ended by their length, one directly after the other."""

    __slots__ = ("longest", "kinds", "ends", "known", "period", "done")

    def __init__(self, longest: int):
        self.longest = longest
        self.kinds: list[int] = []  # of each operation
        self.ends: list[int] = []  # how many results there were after it
        self.known: deque = deque(maxlen=KEPT * longest // SHORT)  # nodes at which later programs ended that were known there
        self.period: int | None = None  # in results
        self.done = 0  # results since a body (or several short ones) began

    def add(self, node, before: tuple | None) -> tuple:
        """Note the program that ended at `node`; `before` is what this returned when one ended there before."""
        if before is not None:
            self.known.append(node)
            self.period, self.done = before
        else:
            for each in (*self.known, node):
                self._note(each)
            self.known.clear()
            period = period_of(self.kinds, self.longest // 2)
            period = None if period is None else self.ends[-1] - self.ends[-1 - period]
            self.done = 0 if period != self.period else self.done + node.n_results
            self.period = period
        if self.period is None or self.done >= _span(self.period):
            self.done = 0
        return self.period, self.done

    def _note(self, node) -> None:
        kinds, ends, start = [], [], self.ends[-1] if self.ends else 0
        while node.parent is not None:
            if node.plan is not None and node.plan.op.name != "in_range":  # checks are recorded where an index is not known yet
                kinds.append(hash((node.plan.op, node.outs)))  # whatever the settings, which may count the loop's rounds
                ends.append(start + node.n_results)
            node = node.parent
        self.kinds = (self.kinds + kinds[::-1])[-KEPT * self.longest:]
        self.ends = (self.ends + ends[::-1])[-KEPT * self.longest:]

    def next_length(self) -> int:
        """How many results the next program has."""
        if self.period is None:
            return self.longest
        span = _span(self.period)
        piece = -(-span // -(-span // self.longest))
        return min(piece, span - self.done)


def _span(period: int) -> int:
    return -(-SHORT // period) * period


def period_of(kinds: list, least: int) -> int | None:
    """The period of the longest tail of `kinds` that repeats itself, for at least `least` items and one whole period."""
    tail = kinds[::-1]
    borders = [0] * len(tail)  # of each beginning of tail: how much of it is also its end (Knuth, Morris and Pratt)
    border, found = 0, None
    for i in range(1, len(tail)):
        while border and tail[i] != tail[border]:
            border = borders[border - 1]
        border += tail[i] == tail[border]
        borders[i] = border
        period = i + 1 - border
        if border >= max(period, least):
            found = period
    return found
