"""What the import made and Python's garbage collector need not look at: it stays until the process ends.

Of a full collection in a small program nearly all the time went to that (0.1 s each: JAX's, SciPy's and torchlike's functions and classes), and such
collections come often, as a graph of differentiation is many objects that live for a while.
"""
from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

MOST_BEFORE = 200_000  # objects of a young process: in one that has run for long, what is garbage later would stay among them
FEW = 1000  # objects that are frozen at most where the program has frozen none: Python 3.12 itself begins with some hundred
_aside = 0  # objects that were set aside


def set_aside(before: int) -> None:
    """Keep all objects of now from the collector, if there were but a few before the import, and the program has not done so with some itself."""
    global _aside
    if gc.get_freeze_count() > FEW:
        return
    gc.freeze()
    if before < MOST_BEFORE:
        _aside = gc.get_freeze_count()
    else:
        gc.unfreeze()  # all into the oldest generation: the first collection would look at everything, a tenth of the import


@contextlib.contextmanager
def all_known() -> Iterator[None]:
    """Inside of the block the collector knows all objects: somebody is going to ask it which there are, or who holds one. What the program has frozen is
    frozen again afterwards, with all that is there by then."""
    global _aside
    count = gc.get_freeze_count()
    theirs = count > max(_aside, FEW)
    if theirs:
        gc.collect()  # garbage, which would stay
    if theirs or _aside:
        gc.unfreeze()
    _aside = 0
    try:
        yield
    finally:
        if theirs:
            gc.freeze()
