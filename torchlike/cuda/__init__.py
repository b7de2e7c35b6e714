"""torch.cuda: queries of JAX's GPUs. XLA schedules streams itself, so synchronisation is waiting for pending values."""
from __future__ import annotations

import contextlib

import jax

from .._core import device as dev
from .._core import program
from ..ops.random import Generator, manual_seed  # noqa: F401
from ..ops.tensor_types import CUDA as _TENSOR_TYPES

globals().update(_TENSOR_TYPES)  # torch.cuda.FloatTensor and the others


def is_available() -> bool:
    """Whether JAX has a GPU."""
    return dev.cuda_available()


def device_count() -> int:
    """The number of GPUs that JAX sees."""
    return dev.device_count("cuda")


def is_initialized() -> bool:
    """Whether a GPU is in use: JAX initialises its devices at first sight."""
    return is_available()


def init() -> None:
    """Raise torch's error when there is no GPU."""
    _need()


def _need() -> None:
    if not is_available():
        raise AssertionError("Torch not compiled with CUDA enabled")


_current = [0]


def _index(device) -> int:
    if device is None:
        return _current[0]
    if isinstance(device, int):
        return device
    return dev.device(device).index or 0


def current_device() -> int:
    """The index of the selected GPU."""
    _need()
    return _current[0]


def set_device(device) -> None:
    """Select the GPU that 'cuda' means."""
    _need()
    _current[0] = _index(device)


def _jax(device):
    _need()
    return jax.local_devices(backend="cuda")[_index(device)]


def get_device_name(device=None) -> str:
    """The GPU's name."""
    return _jax(device).device_kind


def get_device_capability(device=None) -> tuple[int, int]:
    """The GPU's compute capability."""
    major, _, minor = str(_jax(device).compute_capability).partition(".")
    return int(major), int(minor or 0)


def synchronize(device=None) -> None:
    """Wait until everything recorded so far has run."""
    program.flush("torch.cuda.synchronize")
    if is_available():
        for array in jax.live_arrays("cuda"):
            array.block_until_ready()


def empty_cache() -> None:
    """Run what is pending, so that memory of dead values is free; XLA's allocator keeps its pool."""
    program.flush("torch.cuda.empty_cache")


def ipc_collect() -> None:
    """Nothing to collect: no memory is shared between processes."""


def _statistic(name: str, device) -> int:
    return int((_jax(device).memory_stats() or {}).get(name, 0)) if is_available() else 0


def memory_allocated(device=None) -> int:
    """Bytes in use on the GPU."""
    return _statistic("bytes_in_use", device)


def max_memory_allocated(device=None) -> int:
    """The most bytes in use so far."""
    return _statistic("peak_bytes_in_use", device)


def memory_reserved(device=None) -> int:
    """Bytes that XLA's allocator holds."""
    return _statistic("pool_bytes", device)


def max_memory_reserved(device=None) -> int:
    """The most bytes that XLA's allocator held."""
    return _statistic("peak_pool_bytes", device)


def mem_get_info(device=None) -> tuple[int, int]:
    """(free, total) bytes."""
    stats = _jax(device).memory_stats() or {}
    total = int(stats.get("bytes_limit", 0))
    return total - int(stats.get("bytes_in_use", 0)), total


def manual_seed_all(seed: int) -> None:
    """One generator serves all devices."""
    manual_seed(seed)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


class device(contextlib.ContextDecorator):
    """Select a GPU inside the block."""

    def __init__(self, device):
        self.index = _index(device) if is_available() else -1

    def __enter__(self):
        self.before = _current[0]
        if self.index >= 0:
            _current[0] = self.index

    def __exit__(self, *exc):
        _current[0] = self.before
