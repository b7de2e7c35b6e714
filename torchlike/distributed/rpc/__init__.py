"""torch.distributed.rpc: workers that call each other's functions. What travels is pickled, so workers have to trust each other."""

from __future__ import annotations

import itertools
import numbers
from datetime import timedelta
from typing import Any

from .. import autograd
from ..rendezvous import rendezvous
from ..store import PrefixStore, Store
from . import api, backend_registry, constants, functions, internal, options, rref_proxy  # noqa: F401
from ._agent import TensorPipeAgent, agent, current  # noqa: F401
from ._worker import WorkerInfo  # noqa: F401
from .api import (  # noqa: F401
    RRef,
    _get_current_rpc_agent,
    _is_current_rpc_agent_set,
    _set_rpc_timeout,
    get_rpc_timeout,
    get_worker_info,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from .backend_registry import BackendType
from .options import RpcBackendOptions, TensorPipeRpcBackendOptions
from .rref import PyRRef, references  # noqa: F401

__all__ = ["BackendType", "RRef", "TensorPipeRpcBackendOptions", "get_worker_info", "init_rpc", "is_available", "remote", "rpc_async", "rpc_sync", "shutdown"]

_made = itertools.count()  # groups so far: every process counts them, so that one store serves all
_stores: list[Any] = []  # what keeps the store's server alive


def is_available() -> bool:
    """Whether there is this package: always."""
    return True


def init_rpc(name: str, backend: Any = None, rank: int = -1, world_size: int | None = None, rpc_backend_options: RpcBackendOptions | None = None) -> None:
    """Begin RPC in this process, as worker `name`, whose number is `rank`: once all `world_size` workers are there. Without `world_size`
    workers come and go.

    The workers meet at `rpc_backend_options.init_method`. RuntimeError for a bad name, one that two workers have, or a second call.
    """
    if backend is not None and not isinstance(backend, backend_registry.BackendType):
        raise TypeError("Argument backend must be a member of BackendType")
    if rpc_backend_options is not None and not isinstance(rpc_backend_options, RpcBackendOptions):
        raise TypeError("Argument rpc_backend_options must be an instance of RpcBackendOptions")
    if backend is None:
        backend = backend_registry.BackendType.TENSORPIPE if rpc_backend_options is None else _backend_of(rpc_backend_options)
    if rpc_backend_options is None:
        rpc_backend_options = backend_registry.construct_rpc_backend_options(backend)
    if _is_current_rpc_agent_set():
        raise RuntimeError("RPC is already initialized")
    meeting = rendezvous(rpc_backend_options.init_method, rank, world_size or 0)
    store, found, _ = next(meeting)
    store.set_timeout(timedelta(seconds=rpc_backend_options.rpc_timeout) or timedelta(days=7))
    _stores[:] = [meeting, store]
    _init_rpc_backend(backend, PrefixStore(f"rpc_prefix_{next(_made)}", store), name, rank if rank >= 0 else found, world_size, rpc_backend_options)


def _backend_of(given: RpcBackendOptions) -> Any:
    for backend in backend_registry.BackendType:
        if isinstance(given, type(backend_registry.construct_rpc_backend_options(backend))):
            return backend
    raise TypeError(f"Could not infer backend for options {given}")


def _validate_rpc_args(backend: Any, store: Any, name: Any, rank: Any, world_size: Any, rpc_backend_options: Any) -> None:
    for given, kind in ((backend, backend_registry.BackendType), (store, Store), (name, str), (rank, numbers.Integral),
                        (world_size, (numbers.Integral, type(None))), (rpc_backend_options, RpcBackendOptions)):
        if not isinstance(given, kind):
            raise RuntimeError(f"Argument {given} must be of type {kind} but got type {type(given)}")


def _init_rpc_backend(backend: Any = BackendType.TENSORPIPE, store: Store | None = None, name: str | None = None, rank: int = -1,
                      world_size: int | None = None, rpc_backend_options: RpcBackendOptions | None = None) -> None:
    _validate_rpc_args(backend, store, name, rank, world_size, rpc_backend_options)
    if _is_current_rpc_agent_set():
        raise RuntimeError("RPC is already initialized")
    made = backend_registry.init_backend(backend, store=store, name=name, rank=rank, world_size=world_size, rpc_backend_options=rpc_backend_options)
    if not current:  # an agent of the program's own
        current[:] = [made]


def _rref_context_get_debug_info() -> dict[str, str]:
    agent()
    return references[0].debug_info()


@api._require_initialized
def _get_debug_info() -> dict[str, Any]:
    return {**_rref_context_get_debug_info(), **agent().get_debug_info(), **autograd._get_debug_info()}
