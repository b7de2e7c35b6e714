"""Memory of GPUs, by the counters of XLA's allocator."""
from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from functools import reduce
from typing import Any

from .._core import program
from .._core.device import DeviceLike
from .._core.errors import OutOfMemoryError  # noqa: F401  (torch.cuda.OutOfMemoryError)
from ._devices import index_of, is_available, jax_device, need

_COUNTERS = {"allocated_bytes": ("bytes_in_use", "peak_bytes_in_use"), "reserved_bytes": ("pool_bytes", "peak_pool_bytes")}
_since: dict[tuple[int, str], tuple[int, int]] = {}  # (GPU, counter) -> (XLA's peak at the last reset, the most seen since)


def _read(name: str, device: DeviceLike | None) -> int:
    return int((jax_device(device).memory_stats() or {}).get(name, 0))


def _now(kind: str, device: DeviceLike | None) -> int:
    if not is_available():
        return 0
    program.flush("torch.cuda.memory_allocated")
    return _read(_COUNTERS[kind][0], device)


def _peak(kind: str, device: DeviceLike | None) -> int:
    """XLA's peak cannot be reset: after a reset it counts where it has risen since, else the most that was seen at a look."""
    now = _now(kind, device)
    if not is_available():
        return 0
    peak, key = _read(_COUNTERS[kind][1], device), (index_of(device), kind)
    if key not in _since:
        return peak
    before, seen = _since[key]
    _since[key] = before, max(seen, now)
    return peak if peak > before else max(seen, now)


def memory_allocated(device: DeviceLike | None = None) -> int:
    """Bytes in use on the GPU."""
    return _now("allocated_bytes", device)


def max_memory_allocated(device: DeviceLike | None = None) -> int:
    """The most bytes in use so far, or since the last reset."""
    return _peak("allocated_bytes", device)


def memory_reserved(device: DeviceLike | None = None) -> int:
    """Bytes that XLA's allocator holds."""
    return _now("reserved_bytes", device)


def max_memory_reserved(device: DeviceLike | None = None) -> int:
    """The most bytes that XLA's allocator held, or since the last reset."""
    return _peak("reserved_bytes", device)


def memory_cached(device: DeviceLike | None = None) -> int:
    """The older name of memory_reserved."""
    warnings.warn("`torch.cuda.memory_cached` has been renamed to `torch.cuda.memory_reserved`", FutureWarning, stacklevel=2)
    return memory_reserved(device)


def max_memory_cached(device: DeviceLike | None = None) -> int:
    """The older name of max_memory_reserved."""
    warnings.warn("`torch.cuda.max_memory_cached` has been renamed to `torch.cuda.max_memory_reserved`", FutureWarning, stacklevel=2)
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: DeviceLike | None = None) -> None:
    """Count peaks from here."""
    need(AttributeError)
    for kind in _COUNTERS:
        now = _now(kind, device)
        _since[index_of(device), kind] = _read(_COUNTERS[kind][1], device), now


def reset_max_memory_allocated(device: DeviceLike | None = None) -> None:
    """The older name of reset_peak_memory_stats."""
    warnings.warn(
        "torch.cuda.reset_max_memory_allocated now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning, stacklevel=2)
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: DeviceLike | None = None) -> None:
    """The older name of reset_peak_memory_stats."""
    warnings.warn(
        "torch.cuda.reset_max_memory_cached now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning, stacklevel=2)
    reset_peak_memory_stats(device)


def memory_stats(device: DeviceLike | None = None) -> OrderedDict[str, int]:
    """The counters that XLA has, under torch's names; empty without a GPU."""
    if not is_available():
        return OrderedDict()
    found = {}
    for kind in _COUNTERS:
        found[f"{kind}.all.current"], found[f"{kind}.all.peak"] = _now(kind, device), _peak(kind, device)
    return OrderedDict(sorted(found.items()))


def nested(counters: OrderedDict[str, int]) -> dict[str, Any]:
    """Counters with a dictionary for each part of their dotted names."""
    made: dict[str, Any] = {}
    for name, count in counters.items():
        *path, last = name.split(".")
        reduce(lambda at, part: at.setdefault(part, {}), path, made)[last] = count
    return made


def memory_stats_as_nested_dict(device: DeviceLike | None = None) -> dict[str, Any]:
    """memory_stats in dictionaries of dictionaries."""
    return nested(memory_stats(device))


def host_memory_stats() -> OrderedDict[str, int]:
    """Empty: no memory of the host is kept for copies to a GPU."""
    return OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """The same."""
    return {}


def get_per_process_memory_fraction(device: DeviceLike | None = None) -> float:
    """Which part of the GPU's memory XLA's allocator may hold."""
    need()
    return float(os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", 0.75))


def set_per_process_memory_fraction(fraction: float, device: DeviceLike | None = None) -> None:
    """Warns where that is another part than XLA's allocator took when the process began, which cannot be changed any more. TypeError, ValueError for
    what is no part."""
    need()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    if fraction != get_per_process_memory_fraction(device):
        warnings.warn(f"XLA took its part of the GPU's memory when this process began; set XLA_PYTHON_CLIENT_MEM_FRACTION={fraction} before", stacklevel=2)


def memory_summary(device: DeviceLike | None = None, abbreviated: bool = False) -> str:
    """A readable table of memory_stats."""
    stats = memory_stats(device)
    rows = [(name, stats[f"{name}.all.current"], stats[f"{name}.all.peak"]) for name in _COUNTERS]
    lines = [f"memory of cuda:{index_of(device)}", f"{'':16s}{'current':>14s}{'peak':>14s}"]
    return "\n".join(lines + [f"{name:16s}{now / 2**20:10.1f} MiB{peak / 2**20:10.1f} MiB" for name, now, peak in rows])


def mem_get_info(device: DeviceLike | None = None) -> tuple[int, int]:
    """(free, total) bytes of what this process may use."""
    stats = jax_device(device).memory_stats() or {}
    total = int(stats.get("bytes_limit", 0))
    return total - int(stats.get("bytes_in_use", 0)), total


def empty_cache() -> None:
    """Run what is pending, so that memory of dead values is free; XLA's allocator keeps its pool."""
    program.flush("torch.cuda.empty_cache")
