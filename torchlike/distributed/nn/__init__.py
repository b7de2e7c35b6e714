"""Collectives through which gradients flow."""
from typing import Any as _Any

from .functional import (  # noqa: F401
    ReduceOp,
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    group,
    reduce,
    reduce_scatter,
    scatter,
)


def __getattr__(name: str) -> _Any:
    if name == "RemoteModule":  # loads RPC
        from .api.remote_module import RemoteModule
        return RemoteModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
