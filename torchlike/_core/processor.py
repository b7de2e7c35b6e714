"""What this machine's processor can do."""
from __future__ import annotations

import functools


@functools.cache
def flags() -> frozenset[str]:
    """Linux's words for it, on x86-64 and Arm; nothing on other systems."""
    try:
        with open("/proc/cpuinfo") as f:
            return frozenset(next((line for line in f if line.startswith(("flags", "Features"))), "").split())
    except OSError:
        return frozenset()
