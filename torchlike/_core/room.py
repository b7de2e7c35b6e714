"""What no memory can hold is refused when it is asked for, on the user's line: XLA would end the process."""
from __future__ import annotations

import functools
import math
import os

from . import dtype as dt

_LARGE = 1 << 30  # bytes from which somebody looks at the machine's memory
SPARE = _LARGE >> 4  # so many elements may be as many bytes


def need_room(shape: tuple, dtype: dt.dtype, device) -> None:
    """torch's errors for memory that is too large."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE or device.type == "meta":
        if not size:
            need_strides(shape)
        return
    if size >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if size > _memory():
        raise RuntimeError(f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {size} bytes. Error code 12 (Cannot allocate memory)")


def need_strides(shape: tuple) -> None:
    """torch's error for a tensor without elements whose strides an int64 does not hold."""
    if math.prod(n or 1 for n in shape) >= 1 << 63:
        raise RuntimeError("Stride calculation overflowed")


def need_count(shape: tuple) -> None:
    """torch's error for more elements than an int64 counts."""
    if math.prod(shape) >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")


@functools.cache
def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return 1 << 46
