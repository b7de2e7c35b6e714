"""What this machine's processor can do, and how it rounds to zero."""
from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys


def cores() -> int:
    """How many of the processors this process may use; all, where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def flags() -> frozenset[str]:
    """Linux's words for it, on x86-64 and Arm; on other systems nothing, but that all of Apple's compute in float16."""
    try:
        with open("/proc/cpuinfo") as f:
            return frozenset(next((line for line in f if line.startswith(("flags", "Features"))), "").split())
    except OSError:
        return frozenset({"asimdhp"} if sys.platform == "darwin" and platform.machine() == "arm64" else ())


class _Environment(ctypes.Structure):
    """C's `fenv_t` on x86-64 Linux: the settings of the vector units come last."""

    _fields_ = [("x87", ctypes.c_ubyte * 28), ("mxcsr", ctypes.c_uint32)]


_FLUSH = 0x8040  # results to zero, operands to zero


def flush_denormals(on: bool) -> bool:
    """Whether this thread's arithmetic takes numbers below the smallest normal one for zeros; False if that cannot be set here."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    maths, environment = ctypes.CDLL("libm.so.6"), _Environment()
    if maths.fegetenv(ctypes.byref(environment)):
        return False
    environment.mxcsr = environment.mxcsr | _FLUSH if on else environment.mxcsr & ~_FLUSH
    return maths.fesetenv(ctypes.byref(environment)) == 0
