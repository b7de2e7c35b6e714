"""What `torchlike.explain()` prints: how each program ended, how it ran, and what its compilation cost."""
from __future__ import annotations

import os
import sys
from collections import deque
from typing import NamedTuple

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Entry(NamedTuple):
    line: str  # 'file:line' of the user's code that ended the program
    reason: str
    how: str  # 'numpy', 'compiled', 'compiled now', 'from disk'
    seconds: float  # spent compiling or loading
    operations: int
    outputs: int
    seen: int
    changed: str  # against the nearest earlier program that ended on the same line
    refusal: str  # why the program cannot be compiled


enabled = True
entries: deque[Entry] = deque(maxlen=10_000)
compilations: list = []  # (operations, seconds, how) of every compilation of this process
fallbacks: list[tuple[str, str]] = []  # (function, reason) of torch.compile calls that stay recorded eager
_last_at_line: dict = {}


def fallback(name: str, reason: str) -> None:
    """Note why a compiled function is not replayed; each reason once."""
    if (name, reason) not in fallbacks:
        fallbacks.append((name, reason))


def user_line() -> str:
    """'file:line' of the innermost frame outside torchlike."""
    frame = sys._getframe(2)
    while frame is not None and (frame.f_code.co_filename.startswith(HERE) or frame.f_code.co_filename[0] == "<"):
        frame = frame.f_back
    return "?" if frame is None else f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def add(prog, info, reason: str, how: str, seconds: float) -> None:
    line = user_line()
    before = _last_at_line.get(line)
    changed = "" if before is None or before is info else (before, info)
    _last_at_line[line] = info
    entries.append(Entry(line, reason, how, seconds, len(info.steps), info.n_results, info.seen, changed, info.refusal))


def _difference(changed) -> str:
    """The first record in which two programs differ."""
    if not changed:
        return ""
    old, new = changed
    for i, (a, b) in enumerate(zip(old.input_avals, new.input_avals)):
        if a is not b:
            return f"input {i} was {a!r}, is {b!r}"
    for i, (a, b) in enumerate(zip(old.steps, new.steps)):
        if a.plan is not b.plan:
            return f"operation {i} was {a.plan!r:.60}, is {b.plan!r:.60}" if a.plan.op is not b.plan.op or \
                a.plan.avals == b.plan.avals else f"operation {i} ({a.plan.op.name}): {a.plan.avals} is now {b.plan.avals}"
        if a.refs != b.refs:
            return f"operation {i} ({a.plan.op.name}) reads other values"
    if len(old.steps) != len(new.steps):
        return f"{len(old.steps)} operations before, {len(new.steps)} now"
    return "other inputs" if len(old.input_avals) != len(new.input_avals) else ""


class Explanation:
    """A table of programs, one row per user line and way of running; `str()` prints it, `.rows` holds it."""

    def __init__(self, last: int | None = None):
        taken = list(entries) if last is None else list(entries)[-last:]
        groups: dict = {}
        for e in taken:
            g = groups.setdefault((e.line, e.reason, e.how, e.operations), [0, 0.0, "", e])
            g[0] += 1
            g[1] += e.seconds
            g[2] = (e.refusal and f"cannot be compiled: {e.refusal.splitlines()[0]}") or _difference(e.changed) or g[2]
        self.rows = [{"line": k[0], "reason": k[1], "ran": k[2], "operations": k[3], "times": g[0], "seconds": round(g[1], 3), "changed": g[2]}
                     for k, g in groups.items()]

    def __str__(self):
        head = ("ended at", "because", "ran", "ops", "times", "compile s", "changed against the last program there")
        body = [(r["line"], r["reason"], r["ran"], str(r["operations"]), str(r["times"]), f"{r['seconds']:.3f}", r["changed"])
                for r in self.rows]
        widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head) - 1)]
        lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths)), row[-1]]).rstrip() for row in [head, *body]]
        n = len(compilations)
        lines.append(f"{len(entries)} programs run; {n} compiled or loaded in {sum(c[1] for c in compilations):.2f} s")
        lines += [f"torch.compile({name}) stays eager: {reason}" for name, reason in fallbacks]
        return "\n".join(lines)

    __repr__ = __str__


def explain(last: int | None = None) -> Explanation:
    """Which user lines ended programs, why, how they ran and what compiling them cost (the last `last` programs, or all)."""
    return Explanation(last)
