"""What must be true of results that nobody has looked at yet: errors that only the data can tell, raised where a value reaches the user."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from .value import Value

MOST = 64  # checks that wait for an observation, before the older ones are looked at


class Check(NamedTuple):
    """What must be true of a program's results: `error(found's array)` is raised where the bool `ok` is not."""

    ok: Value
    error: Callable[..., Exception]
    found: Value | None = None


_waiting: list[Check] = []
_raised = [0]  # how many have raised


class NotWritten:
    """Why a result is not there: a write at indices out of range. Once a check has said so, it is what stands there without it, as in torch, whose
    line raised."""

    def __init__(self, error: Exception, instead: Value):
        self.error, self.instead, self.before = error, instead, _raised[0]

    def again(self) -> Value:
        """What to look at now."""
        if _raised[0] == self.before:
            raise self.error.with_traceback(None)
        return self.instead


def check_later(checks: Iterable[Check]) -> None:
    """Checks whose results are there, or are being computed: nobody waits for them before the next observation."""
    _waiting.extend(checks)
    if len(_waiting) > MOST:  # a long loop that looks at nothing; what half of it ago was computed is ready
        half = MOST // 2
        _waiting[:half] = filter(_failed, _waiting[:half])


def _failed(check: Check) -> bool:
    return check.ok.array is not None and not np.asarray(check.ok.array).all()


def raise_failed(check: Check) -> None:
    if _failed(check):
        _raised[0] += 1
        raise check.error() if check.found is None else check.error(np.asarray(check.found.array))


def raise_failed_checks() -> None:
    """Called when a value reaches the user."""
    if _waiting:
        waiting = _waiting[:]
        _waiting.clear()
        for each in waiting:
            raise_failed(each)
