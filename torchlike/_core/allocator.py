"""Large arrays keep their memory pages between steps.

glibc hands each large block back to the system when it is freed and asks for a fresh one next time; every page of that is
then faulted in and zeroed again: up to a quarter of a training step's time (`benchmarks/allocator.py`). XLA's CPU buffers and
NumPy's come from malloc, so one setting serves both: blocks come from the heap, and up to KEEP free bytes at its end stay
with the process. It is made when the first large program runs. What each compilation used goes back to the system. What is free some
programs later does so as well, while a program runs: a large temporary buffer may lie where a smaller one was before, or at the end of the heap
instead of the place it had (glibc 2.36 finds no place for an aligned block where one as long was). The same is done, ever more seldom, where memory has grown, or
where all programs are small: theirs is little of the process's, and does not show.
Threads share one heap, from import on: a thread's own heap, where XLA's would allocate, goes back whenever it is empty. It costs a compilation
on several cores a fifth more time.
`TORCHLIKE_MALLOC=off` leaves malloc alone; so does a setting of the user's own.
"""
from __future__ import annotations

import ctypes
import functools
import os
import sys

KEEP = 1 << 30
let_others_run = getattr(os, "sched_yield", lambda: None)  # other threads on this core; Windows has none
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8  # names in glibc's malloc.h
_OWN = ("MALLOC_ARENA_MAX", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES", "LD_PRELOAD")


@functools.cache
def _library():
    """glibc with one heap for all threads, or None where there is no glibc or it is not wanted."""
    if not sys.platform.startswith("linux") or os.environ.get("TORCHLIKE_MALLOC") == "off" or any(n in os.environ for n in _OWN):
        return None
    try:
        library = ctypes.CDLL(None)
        library.mallopt(_ARENA_MAX, 1)
    except (OSError, AttributeError):  # another C library
        return None
    return library


@functools.cache
def _keep_pages(library) -> None:
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, KEEP)
    library.mallopt(_TOP_PAD, 16 << 20)


def keep() -> None:
    """Keep pages from here on."""
    library = _library()
    if library is not None:
        _keep_pages(library)


def give_back() -> None:
    """Give back what is free now, keep what steps use from here on."""
    library = _library()
    if library is not None:
        _keep_pages(library)
        library.malloc_trim(0)


def has_grown() -> bool:
    """Whether the process has more memory pages than when this was asked before, by a twentieth."""
    if _library() is None:
        return False
    with open("/proc/self/statm") as f:
        pages = int(f.read().split()[1])
    grown = pages > 1.05 * _least[0]
    _least[0] = pages if _least[0] == 0 else min(pages, _least[0])
    return grown


def forget_size() -> None:
    """The process has grown by all its pages when it is next asked."""
    _least[0] = 0


_least = [0]
_library()
