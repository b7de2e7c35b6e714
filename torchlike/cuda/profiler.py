"""torch.cuda.profiler: which part of a program NVIDIA's profilers record, where they wait to be told."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

from . import check_error, cudart

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Record from now on."""
    check_error(cudart().cudaProfilerStart())


def stop() -> None:
    """Record no more."""
    check_error(cudart().cudaProfilerStop())


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Record the block."""
    try:
        start()
        yield
    finally:
        stop()
