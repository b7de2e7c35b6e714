"""Names of threads as the system shows them (top -H, /proc/PID/task)."""
from __future__ import annotations

import ctypes
import sys

__all__: list[str] = []

_SET, _GET, _LONGEST = 15, 16, 15  # prctl's numbers, and bytes that Linux keeps


def _set_thread_name(name: str) -> None:
    """Name the current thread. Does nothing where the system is not Linux."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SET, name.encode()[:_LONGEST], 0, 0, 0)


def _get_thread_name() -> str:
    """The name of the current thread."""
    if not sys.platform.startswith("linux"):
        return ""
    name = ctypes.create_string_buffer(_LONGEST + 1)
    ctypes.CDLL(None).prctl(_GET, name, 0, 0, 0)
    return name.value.decode(errors="replace")
