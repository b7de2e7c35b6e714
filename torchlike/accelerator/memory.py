"""torch.accelerator.memory: an accelerator's memory, by the counters of XLA's allocator."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any

import jax

from .._core import program
from . import _selected

__all__ = ["empty_cache", "empty_host_cache", "get_memory_info", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
           "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats"]

_TPU = {"allocated_bytes": ("bytes_in_use", "peak_bytes_in_use"), "reserved_bytes": ("bytes_reserved", "peak_bytes_reserved")}


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


def _of_gpu(name: str, device: Any) -> Any:
    """The same question to torch.cuda."""
    from ..cuda import memory
    return getattr(memory, name)(_selected.at(device))


def memory_allocated(device: Any = None, /) -> int:
    """Bytes in use."""
    return _counter("bytes_in_use", device)


def max_memory_allocated(device: Any = None, /) -> int:
    """The most bytes in use so far, or since the last reset."""
    return _of_gpu("max_memory_allocated", device) if _selected.need() == "cuda" else _counter("peak_bytes_in_use", device)


def memory_reserved(device: Any = None, /) -> int:
    """Bytes that XLA's allocator holds."""
    return _of_gpu("memory_reserved", device) if _selected.need() == "cuda" else _counter("bytes_reserved", device)


def max_memory_reserved(device: Any = None, /) -> int:
    """The most bytes that XLA's allocator held, or since the last reset."""
    return _of_gpu("max_memory_reserved", device) if _selected.need() == "cuda" else _counter("peak_bytes_reserved", device)


def memory_stats(device: Any = None, /) -> OrderedDict[str, Any]:
    """The counters that XLA has, under torch's names."""
    if _selected.need() == "cuda":
        return _of_gpu("memory_stats", device)
    return OrderedDict((f"{kind}.all.{when}", _counter(name, device)) for kind, names in _TPU.items() for when, name in zip(("current", "peak"), names))


def reset_accumulated_memory_stats(device: Any = None, /) -> None:
    """Nothing to reset: of what was allocated and freed in all, XLA has no counters, and `memory_stats` none."""
    _selected.at(device)


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Count peaks from here. RuntimeError on a TPU, whose peak XLA keeps."""
    if _selected.need() != "cuda":
        raise RuntimeError("the peak of a TPU's memory cannot be reset")
    _of_gpu("reset_peak_memory_stats", device)


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """(free, total) bytes of what this process may use."""
    total = _counter("bytes_limit", device)
    return total - _counter("bytes_in_use", device), total
