"""Large arrays keep their memory pages between steps.

glibc hands each large block back to the system when it is freed and asks for a fresh one next time; every page of that is
then faulted in and zeroed again, which took a fifth of a training step's time (`benchmarks/allocator.py`). XLA's CPU
buffers and NumPy's come from malloc, so one setting serves both: blocks come from the heap, and up to KEEP free bytes at its
end stay with the process. `TORCHLIKE_MALLOC=off` leaves malloc alone; so does a setting of the user's own.
"""
from __future__ import annotations

import ctypes
import os
import sys

KEEP = 1 << 30
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # names in glibc's malloc.h
_OWN = ("MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES", "LD_PRELOAD")


def keep_pages() -> bool:
    """Apply the setting; False where there is no glibc or it is not wanted."""
    if not sys.platform.startswith("linux") or os.environ.get("TORCHLIKE_MALLOC") == "off" or any(n in os.environ for n in _OWN):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, KEEP) and mallopt(_TOP_PAD, 16 << 20))
