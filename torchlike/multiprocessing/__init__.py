"""Python's multiprocessing, with tensors sent by value (those of `share_memory_()` as their memory), `spawn`, and forks that are safe beside JAX."""
from multiprocessing import *  # noqa: F403
from multiprocessing import __all__ as _stdlib_names

from . import _fork  # noqa: F401  (makes forks safe)
from ._names import _get_thread_name, _set_thread_name  # noqa: F401
from ._sharing import get_all_sharing_strategies, get_sharing_strategy, set_sharing_strategy
from .spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_stdlib_names,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
