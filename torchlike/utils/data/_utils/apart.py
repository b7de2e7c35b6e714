"""Samples made in this process: their small operations are done at once, larger ones recorded with the step that uses them, or run one by one.

A batch joined of known samples is one input of the step; of recorded ones it would be operations, for each sample. A dataset that writes words
of any length into tensors records other operations for each batch. As part of a training step they would make each step a program that was
never seen, so that none is ever compiled.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torchlike._core import program

NEW = 2  # fetches in a row whose operations had not been recorded before


@contextlib.contextmanager
def done_at_once() -> Iterator[None]:
    """Small operations are done at once inside, where nothing is pending."""
    outer, program.state.samples = program.state.samples, True
    try:
        yield
    finally:
        program.state.samples = outer


class Fetches:
    """Calls of a fetcher in turn: recorded, until NEW in a row were new to the recorder, then run operation by operation."""

    def __init__(self) -> None:
        self._new = 0

    def __call__(self, fetch: Callable[[Any], Any], index: Any) -> Any:
        if program.is_immediate() or program.state.capture is not None:
            return fetch(index)
        if self._new >= NEW:
            with program.immediate():
                return fetch(index)
        before = program.trie.size
        with done_at_once():
            data = fetch(index)
        self._new = self._new + 1 if program.trie.size > before else 0
        return data
