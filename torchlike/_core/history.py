"""What `torchlike.explain()` prints: how each program ended, how it ran, and what its compilation cost."""
from __future__ import annotations

import contextlib
import os
import sys
import warnings
import weakref
from collections import deque
from typing import Any, NamedTuple

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TYPED = ("<ipython-input", "<stdin>", "<python-input", "<console>", "<doctest", "<timed ", "<magic-timeit>")  # what a user wrote, though in no file


class Entry(NamedTuple):
    place: tuple[str, int]  # file and line of the user's code that ended the program
    reason: str
    how: str  # 'numpy', 'compiled', 'compiled now', 'from disk'
    seconds: float  # spent compiling or loading
    operations: int
    program: weakref.ref  # to its program_info.ProgramInfo: a program that never returns is forgotten, but for the last ones
    earlier: weakref.ref | None  # to that of the program that ended there before
    refusal: str  # why the program cannot be compiled

    @property
    def info(self) -> Any:
        return self.program()

    @property
    def before(self) -> Any:
        return self.earlier and self.earlier()


_entry = tuple.__new__  # without the constructor of NamedTuple: every program makes one
entries: deque[Entry] = deque(maxlen=10_000)
_kept: deque = deque()  # the programs of the last entries, as many as have KEPT operations
_kept_operations = 0
KEPT = 5_000
compilations: list = []  # (operations, seconds, how) of every compilation of this process
at_once = 0  # operations that were computed instead of recorded
fallbacks: list[tuple[str, str]] = []  # (function, reason) of torch.compile calls that stay recorded eager
_last_at: dict[tuple, weakref.ref] = {}
_is_ours: dict[str, bool] = {}  # by file name
warnings_always = False  # torch.set_warn_always
_said: set[str] = set()


def fallback(name: str, reason: str) -> None:
    """Note why a compiled function is not replayed; each reason once."""
    if (name, reason) not in fallbacks:
        fallbacks.append((name, reason))


def _is_user(name: str) -> bool:
    """Whether a file name is that of code outside torchlike which somebody wrote: not of what was generated, nor of a decorator like `no_grad()`."""
    if name == "<string>":  # what `python -c` runs; elsewhere (notebooks, too) what `exec` was given, as by dataclasses
        return sys.argv[:1] == ["-c"]
    return not name.startswith((HERE, "<", contextlib.__file__)) or name.startswith(_TYPED)


def _place() -> tuple[str, int]:
    """File and line of the innermost frame outside torchlike; every program asks."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        ours = _is_ours.get(name)
        if ours is None:
            ours = _is_ours[name] = not _is_user(name)
        if not ours:
            return name, frame.f_lineno
        frame = frame.f_back
    return "?", 0


def warn(message: str, once: bool = False) -> None:
    """A UserWarning at the innermost frame outside torchlike; with `once`, only the first time (`torch.set_warn_always` apart)."""
    if once and not warnings_always and message in _said:
        return
    if not warnings_always:
        _said.add(message)
    warnings.warn(message, stacklevel=outside())


def outside() -> int:
    """The stack level of whoever called torchlike, for a warning of the caller's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and not _is_user(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    return level


def shown(place: tuple[str, int]) -> str:
    """'file:line', and 'In[3]:line' of a notebook's cell."""
    name, line = place
    return f"{_cell(name) or os.path.basename(name)}:{line}" if line else name


def _cell(name: str) -> str | None:
    """What IPython calls the cell whose code has this file name: the name itself tells nobody which one it was."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    known = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(name)
    return known and known[1]


def user_line() -> str:
    """'file:line' of the innermost frame outside torchlike."""
    return shown(_place())


def add(info, reason: str, how: str, seconds: float) -> None:
    place, program = _place(), weakref.ref(info)
    before = _last_at.get(place)
    if before is not program:
        _last_at[place] = program
    global _kept_operations
    if not _kept or _kept[-1] is not info:
        _kept.append(info)
        _kept_operations += info.n_operations
        while _kept_operations > KEPT and len(_kept) > 1:
            _kept_operations -= _kept.popleft().n_operations
    entries.append(_entry(Entry, (place, reason, how, seconds, info.n_operations, program, before, info.refusal)))


def _difference(old, new) -> str:
    """The first record in which two programs differ."""
    if old is None or new is None or old is new:
        return ""
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
            g = groups.setdefault((shown(e.place), e.reason, e.how, e.operations), [0, 0.0, ""])
            g[0] += 1
            g[1] += e.seconds
            g[2] = (e.refusal and f"cannot be compiled: {e.refusal.splitlines()[0]}") or _difference(e.before, e.info) or g[2]
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
        if at_once:
            lines.append(f"{at_once} small operations computed at once")
        lines += [f"torch.compile({name}) stays eager: {reason}" for name, reason in fallbacks]
        return "\n".join(lines)

    __repr__ = __str__


def explain(last: int | None = None) -> Explanation:
    """Which user lines ended programs, why, how they ran and what compiling them cost (the last `last` programs, or all)."""
    return Explanation(last)
