"""torch.accelerator: JAX's GPU or TPU, whichever this process has, under one name."""

from typing import Any

import jax

from .._core import dtype as dt
from .._core import program
from .._core.device import canonical, device
from .._core.device import device as _device
from .._core.device import device_count as _count
from . import _selected, memory
from .memory import (  # noqa: F401
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count", "device_index", "get_device_capability", "is_available",
           "set_device_idx", "set_device_index", "set_stream", "synchronize", *memory.__all__]


def is_available() -> bool:
    """Whether JAX has a GPU or a TPU."""
    return _selected.kind() is not None


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of accelerator as a device without index, None if there is none."""
    kind = _selected.kind()
    return None if kind is None else device(kind)


def device_count() -> int:
    """How many devices the accelerator has; 0 without one."""
    kind = _selected.kind()
    return 0 if kind is None else _count(kind)


def current_device_index() -> int:
    """The index of the selected device."""
    _selected.need()
    return _selected.index[0]


def set_device_index(device: Any, /) -> None:
    """Selects a device by index or by name; a negative index changes nothing."""
    kind = _selected.need()
    index = device if isinstance(device, int) else (canonical(device).index or 0)
    if index >= 0:
        canonical(f"{kind}:{index}")
        _selected.index[0] = index


def synchronize(device: Any = None, /) -> None:
    """Waits until everything recorded so far has run."""
    kind = _selected.need()
    program.flush("torch.accelerator.synchronize")
    for array in jax.live_arrays(kind):
        array.block_until_ready()


def current_stream(device: Any = None, /) -> Any:
    """The stream of a device: XLA has one."""
    if device is None or isinstance(device, int):
        _selected.need()
    elif _selected.kind() != _device(device).type:
        raise RuntimeError("Accelerator expected")
    from ..cuda import current_stream
    return current_stream(device)


def set_stream(stream: Any, /) -> None:
    """Nothing changes, as XLA has one stream."""
    _selected.need()


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """{"supported_dtypes": the dtypes that tensors there may have}: all that there are."""
    _selected.at(device)
    return {"supported_dtypes": {x for x in vars(dt).values() if isinstance(x, dt.dtype)}}


class device_index:
    """Select a device by index inside the block; None selects nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.index = device

    def __enter__(self) -> None:
        self.before = _selected.index[0]
        if self.index is not None:
            set_device_index(self.index)

    def __exit__(self, *exc: object) -> None:
        _selected.index[0] = self.before


current_device_idx, set_device_idx = current_device_index, set_device_index
