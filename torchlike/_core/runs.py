"""Runs: small operations that are computed at once, one after the other, until the host looks at a tensor.

To record a small operation takes as long as to compute it in NumPy; what a loop that looks at each result gains by recording is less than what it
takes to end a program. How a program goes on is best told by how it begins: a run begins with an operation that began short programs
before, or, whatever it is, once all that ran lately was short. A run that grows longer than such programs shows that this was wrong.
"""
from __future__ import annotations

from math import inf

from . import costs, host
from .registry import Plan

STREAK = 8  # short programs and runs in a row, after which any small operation may begin a run
SMALL = 4 * costs.HOST_OP  # rough seconds of an operation
LONGEST = costs.DISPATCH  # rough seconds of a run
TINY = 1.5 * costs.HOST_OP  # the same, of one that takes about as long as one on numbers
SIGHTS = 3  # short programs that begin with an operation, after which others are expected to go on like them
LOST, MOST_LOST = 4, 1 << 12  # a longer one takes that many of them back, at first one, and each time this many times as many


class _Run:
    """`seconds`, by estimate, of what was computed at once since the host last looked; `first`, the plan that began it; `streak`, short programs and
    runs in a row."""

    __slots__ = ("seconds", "first", "streak")


run = _Run()
run.seconds, run.streak, run.first = 0.0, 0, None


def looked() -> None:
    """The host looked at a tensor: what follows begins anew."""
    if run.seconds:
        run.seconds = 0.0
        run.streak += 1


def forget() -> None:
    """Nothing is known of what comes next."""
    run.seconds, run.streak = 0.0, 0


def are_expected() -> bool:
    """Whether any small operation begins a run, or goes on with one."""
    return run.seconds > 0 or run.streak >= STREAK


def ran(first: Plan, short: bool) -> None:
    """A program ran that began with `first`."""
    run.seconds = 0.0
    if short:
        run.streak += 1
        first.trust += 1
    else:
        _was_long(first)


def _was_long(first: Plan) -> None:
    """What began with `first` went on for longer than it is worth computing at once."""
    run.streak = 0
    if first.trust >= 0:
        first.lost = min(first.lost * LOST or 1, MOST_LOST)
    first.trust = -first.lost


def goes_on(plan: Plan) -> bool:
    """Whether an operation is computed at once, where nothing is recorded and the host has all it reads."""
    if not run.seconds:
        if plan.trust < (0 if run.streak >= STREAK else SIGHTS) or not is_small(plan):
            return False
        run.first = plan
    elif plan.trust < 0 or not is_small(plan):
        return False
    elif run.seconds + plan.seconds > LONGEST:
        _was_long(run.first)
        return False
    run.seconds += plan.seconds
    return True


def is_small(plan: Plan) -> bool:
    """Whether an operation takes about as long as recording it."""
    if plan.seconds is None:
        most = host.WRITTEN - 1 if plan.op.overwrites else host.LARGE
        small = plan.device.type == "cpu" and all(a.numel <= most for a in plan.outs) and not host.is_foreign(plan)
        plan.seconds = costs.seconds_at_once(plan) if small else inf
    return plan.seconds <= SMALL


def is_tiny(plan: Plan) -> bool:
    """Whether an operation takes about as long as one on numbers."""
    if plan.tiny is None:
        plan.tiny = is_small(plan) and plan.seconds <= TINY
    return plan.tiny
