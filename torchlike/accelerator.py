"""torch.accelerator: JAX's GPU or TPU, whichever this process has, under one name."""

from typing import Any

import jax

from ._core import program
from ._core.device import canonical, device
from ._core.device import device as _device
from ._core.device import device_count as _count

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count", "device_index", "empty_cache", "get_memory_info",
           "is_available", "max_memory_allocated", "memory_allocated", "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize"]

_chosen = [0]
_NONE = "Cannot access accelerator device when none is available."


def _kind() -> str | None:
    return next((kind for kind in ("cuda", "tpu") if _count(kind)), None)


def is_available() -> bool:
    """Whether JAX has a GPU or a TPU."""
    return _kind() is not None


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of accelerator as a device without index, None if there is none."""
    kind = _kind()
    return None if kind is None else device(kind)


def device_count() -> int:
    """How many devices the accelerator has; 0 without one."""
    kind = _kind()
    return 0 if kind is None else _count(kind)


def _need() -> str:
    kind = _kind()
    if kind is None:
        raise RuntimeError(_NONE)
    return kind


def current_device_index() -> int:
    """The index of the selected device."""
    _need()
    return _chosen[0]


def set_device_index(device: Any, /) -> None:
    """Selects a device by index or by name; a negative index changes nothing."""
    kind = _need()
    index = device if isinstance(device, int) else (canonical(device).index or 0)
    if index >= 0:
        canonical(f"{kind}:{index}")
        _chosen[0] = index


def synchronize(device: Any = None, /) -> None:
    """Waits until everything recorded so far has run."""
    kind = _need()
    program.flush("torch.accelerator.synchronize")
    for array in jax.live_arrays(kind):
        array.block_until_ready()


def current_stream(device: Any = None, /) -> Any:
    """The stream of a device: XLA has one."""
    if device is None or isinstance(device, int):
        _need()
    elif _kind() != _device(device).type:
        raise RuntimeError("Accelerator expected")
    from .cuda import current_stream
    return current_stream(device)


def set_stream(stream: Any, /) -> None:
    """Nothing changes, as XLA has one stream."""
    _need()


class device_index:
    """Select a device by index inside the block; None selects nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.index = device

    def __enter__(self) -> None:
        self.before = _chosen[0]
        if self.index is not None:
            set_device_index(self.index)

    def __exit__(self, *exc: object) -> None:
        _chosen[0] = self.before


def empty_cache() -> None:
    """Run what is pending, so that memory of dead values is free; XLA's allocator keeps its pool."""
    _need()
    program.flush("torch.accelerator.empty_cache")


def _memory(name: str, device: Any) -> int:
    kind = _need()
    program.flush("torch.accelerator.memory_allocated")
    index = _chosen[0] if device is None else device if isinstance(device, int) else (canonical(device).index or 0)
    return int((jax.local_devices(backend=kind)[index].memory_stats() or {}).get(name, 0))


def memory_allocated(device: Any = None, /) -> int:
    """Bytes in use."""
    return _memory("bytes_in_use", device)


def max_memory_allocated(device: Any = None, /) -> int:
    """The most bytes in use so far, or since the last reset."""
    if _need() == "cuda":
        from .cuda import max_memory_allocated
        return max_memory_allocated(_chosen[0] if device is None else device)
    return _memory("peak_bytes_in_use", device)


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Count peaks from here. RuntimeError on a TPU, whose peak XLA keeps."""
    if _need() != "cuda":
        raise RuntimeError("the peak of a TPU's memory cannot be reset")
    from .cuda import reset_peak_memory_stats
    reset_peak_memory_stats(_chosen[0] if device is None else device)


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """(free, total) bytes of what this process may use."""
    total = _memory("bytes_limit", device)
    return total - _memory("bytes_in_use", device), total


current_device_idx, set_device_idx = current_device_index, set_device_index
