"""torch.cuda: queries of JAX's GPUs. XLA schedules streams itself, so synchronisation is waiting for pending values."""
from __future__ import annotations

import sys
import typing as _typing

from .._core.errors import AcceleratorError  # noqa: F401
from ..ops.random import Generator, default_generator  # noqa: F401
from ..ops.tensor_types import CUDA as _TENSOR_TYPES
from . import graphs, memory, nccl, random, streams  # noqa: F401
from ._cudart import CudaError, check_error, cudart, cudaStatus  # noqa: F401
from ._devices import (  # noqa: F401
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    is_available,
    is_bf16_supported,
    is_tf32_supported,
    set_device,
)
from ._devices import need as _need
from ._nvml import clock_rate, device_memory_used, memory_usage, power_draw, temperature, utilization  # noqa: F401
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables  # noqa: F401
from .memory import (  # noqa: F401
    OutOfMemoryError,
    empty_cache,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (  # noqa: F401
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (  # noqa: F401
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
    synchronize,
)

if _typing.TYPE_CHECKING:
    from . import amp, nvtx, profiler  # noqa: F401

globals().update(_TENSOR_TYPES)  # torch.cuda.FloatTensor and the others


def is_initialized() -> bool:
    """Whether a GPU is in use: JAX initialises its devices at first sight."""
    return is_available()


def init() -> None:
    """Raise torch's error when there is no GPU."""
    _need()


def ipc_collect() -> None:
    """Nothing to collect: no memory is shared between processes."""
    _need()


has_half, has_magma = True, False
_SYNC_DEBUG_MODES = ("default", "warn", "error")
_sync_debug_mode = [0]


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What waiting for a GPU shall be answered with: "default" (0), "warn" (1) or "error" (2). Kept; every look at a value waits here."""
    _need()
    if isinstance(debug_mode, str):
        if debug_mode not in _SYNC_DEBUG_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _SYNC_DEBUG_MODES.index(debug_mode)
    _sync_debug_mode[0] = debug_mode


def get_sync_debug_mode() -> int:
    """The mode as a number."""
    _need()
    return _sync_debug_mode[0]


def __getattr__(name: str) -> _typing.Any:
    if name == "default_generators":  # asked lazily: JAX must not look for GPUs at import
        return (default_generator,) * device_count()
    if name == "_initialized":  # what is_initialized() says, as reversible layers ask before they keep the GPUs' generators
        return is_initialized()
    if name in ("nvtx", "profiler"):
        from importlib import import_module
        return import_module(f"{__name__}.{name}")
    from .._alias import missing
    raise missing(name, __name__)


__all__ = sorted(n for n, v in vars(sys.modules[__name__]).items() if not n.startswith("_") and n not in ("sys", "annotations"))
