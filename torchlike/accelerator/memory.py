"""torch.accelerator.memory: an accelerator's memory, by the counters of XLA's allocator."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any

import jax

from .._core import program
from . import _selected

__all__ = ["empty_cache", "empty_host_cache", "get_memory_info", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
           "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats"]


def empty_cache() -> None:
    """Run what is pending, so that memory of dead values is free; XLA's allocator keeps its pool."""
    _selected.need()
    program.flush("torch.accelerator.empty_cache")


def empty_host_cache() -> None:
    """Run what is pending: no memory of the host is kept for copies."""
    empty_cache()


def _counter(name: str, device: Any) -> int:
    kind, index = _selected.need(), _selected.at(device)
    program.flush("torch.accelerator.memory")
    return int((jax.local_devices(backend=kind)[index].memory_stats() or {}).get(name, 0))


def _asked(name: str, counter: str, device: Any) -> int:
    """What torch.cuda's function of this name says of a GPU; a TPU's counter."""
    if _selected.need() != "cuda":
        return _counter(counter, device)
    from ..cuda import memory
    return getattr(memory, name)(_selected.at(device))


def memory_allocated(device: Any = None, /) -> int:
    """Bytes in use."""
    return _asked("memory_allocated", "bytes_in_use", device)


def max_memory_allocated(device: Any = None, /) -> int:
    """The most bytes in use so far, or since the last reset."""
    return _asked("max_memory_allocated", "peak_bytes_in_use", device)


def memory_reserved(device: Any = None, /) -> int:
    """Bytes that XLA's allocator holds."""
    return _asked("memory_reserved", "bytes_reserved", device)


def max_memory_reserved(device: Any = None, /) -> int:
    """The most bytes that XLA's allocator held, or since the last reset."""
    return _asked("max_memory_reserved", "peak_bytes_reserved", device)


def memory_stats(device: Any = None, /) -> OrderedDict[str, Any]:
    """The counters that XLA has, under torch's names."""
    found = {"allocated_bytes": (memory_allocated, max_memory_allocated), "reserved_bytes": (memory_reserved, max_memory_reserved)}
    return OrderedDict((f"{name}.all.{when}", read(device)) for name, reads in found.items() for when, read in zip(("current", "peak"), reads))


def reset_accumulated_memory_stats(device: Any = None, /) -> None:
    """Nothing to reset: of what was allocated and freed in all, XLA has no counters, and `memory_stats` none."""
    _selected.at(device)


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Count peaks from here. RuntimeError on a TPU, whose peak XLA keeps."""
    if _selected.need() != "cuda":
        raise RuntimeError("the peak of a TPU's memory cannot be reset")
    from ..cuda import memory
    memory.reset_peak_memory_stats(_selected.at(device))


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """(free, total) bytes of what this process may use."""
    total = _counter("bytes_limit", device)
    return total - _counter("bytes_in_use", device), total
