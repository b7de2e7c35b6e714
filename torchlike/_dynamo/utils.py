"""`torch._dynamo.utils`, as far as libraries ask it something."""
from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from . import config


def is_compile_supported(device_type: Any) -> bool:
    """Whether `torch.compile` works for a kind of device ("cpu", "cuda", "cuda:0"): XLA compiles for these."""
    return str(device_type).partition(":")[0] in ("cpu", "cuda", "tpu")


_WARNED: set[str] = set()


def warn_once(msg: str, stacklevel: int = 1) -> None:
    """A warning at the line that calls (`stacklevel` 1) or further out, the first time that this text comes."""
    if msg not in _WARNED:
        _WARNED.add(msg)
        warnings.warn(msg, stacklevel=stacklevel + 1)


@contextlib.contextmanager
def disable_cache_limit() -> Iterator[None]:
    """Within, the settings that limit how often a function is compiled anew (which torchlike keeps for programs that read them) limit nothing."""
    with config.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize):
        yield
