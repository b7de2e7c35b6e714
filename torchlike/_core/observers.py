"""Who is told what runs: profilers. Mostly nobody."""
from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Protocol


class Observer(Protocol):
    """What is told; times are of time.perf_counter."""

    def operation(self, plan: Any, start: float, end: float) -> None:
        """An operation ran by itself, on the host: its registry.Plan."""

    def program(self, entry: Any, start: float, end: float) -> None:
        """A compiled program ran: its history.Entry."""


watching: list[Observer] = []


def operation(plan: Any, start: float) -> None:
    """Tell everybody of an operation that ends now."""
    end = perf_counter()
    for each in watching:
        each.operation(plan, start, end)


def program(entry: Any, arrays: Sequence, start: float) -> None:
    """Tell everybody of a compiled program, once it has these arrays."""
    for array in arrays:
        array.block_until_ready()
    end = perf_counter()
    for each in watching:
        each.program(entry, start, end)
