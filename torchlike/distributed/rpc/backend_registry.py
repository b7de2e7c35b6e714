"""The backends of torch.distributed.rpc, by name. There is one; a program may add its own."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from ...cuda import device_count
from ..store import Store
from . import constants
from ._agent import TensorPipeAgent, _DeviceMap, current
from .api import start
from .options import RpcBackendOptions, TensorPipeRpcBackendOptions

__all__ = ["BackendType", "BackendValue", "backend_registered", "construct_rpc_backend_options", "init_backend", "register_backend"]


class BackendValue(NamedTuple):
    """How a backend makes its options, and its agent."""

    construct_rpc_backend_options_handler: Callable[..., RpcBackendOptions]
    init_backend_handler: Callable[..., Any]


def _kinds(members: dict[str, BackendValue]) -> type[enum.Enum]:
    made = enum.Enum("BackendType", members)
    made.__repr__ = lambda self: f"BackendType.{self.name}"
    return made


BackendType = _kinds({})


def backend_registered(backend_name: str) -> bool:
    return backend_name in BackendType.__members__


def register_backend(backend_name: str, construct_rpc_backend_options_handler: Callable, init_backend_handler: Callable) -> enum.Enum:
    """A new member of BackendType: `construct_rpc_backend_options_handler(rpc_timeout, init_method, **settings)` returns its options,
    `init_backend_handler(store=, name=, rank=, world_size=, rpc_backend_options=)` its agent."""
    global BackendType
    if backend_registered(backend_name):
        raise RuntimeError(f"RPC backend {backend_name}: already registered")
    members = {m.name: m.value for m in BackendType}
    BackendType = _kinds({**members, backend_name: BackendValue(construct_rpc_backend_options_handler, init_backend_handler)})
    return BackendType[backend_name]


def construct_rpc_backend_options(backend: enum.Enum, rpc_timeout: float = constants.DEFAULT_RPC_TIMEOUT_SEC,
                                  init_method: str = constants.DEFAULT_INIT_METHOD, **kwargs: Any) -> RpcBackendOptions:
    return backend.value.construct_rpc_backend_options_handler(rpc_timeout, init_method, **kwargs)


def init_backend(backend: enum.Enum, *args: Any, **kwargs: Any) -> Any:
    return backend.value.init_backend_handler(*args, **kwargs)


def _options(rpc_timeout: float, init_method: str, num_worker_threads: int = constants.DEFAULT_NUM_WORKER_THREADS, **settings: Any) -> RpcBackendOptions:
    return TensorPipeRpcBackendOptions(rpc_timeout=rpc_timeout, init_method=init_method, num_worker_threads=num_worker_threads)


def _started(store: Store, name: str, rank: int, world_size: int | None, rpc_backend_options: RpcBackendOptions) -> TensorPipeAgent:
    """The agent of this process, once all workers have theirs."""
    if not isinstance(store, Store):
        raise TypeError(f"`store` must be a c10d::Store. {store}")
    if not isinstance(rpc_backend_options, TensorPipeRpcBackendOptions):
        raise TypeError(f"`rpc_backend_options` must be a `TensorPipeRpcBackendOptions`. {rpc_backend_options}")
    agent = TensorPipeAgent(store, name, rank, world_size, rpc_backend_options)
    start(agent)
    try:
        _meet(agent, world_size)
    except BaseException:
        agent.shutdown()
        current.clear()
        raise
    return agent


def _meet(agent: TensorPipeAgent, world_size: int | None) -> None:
    """Wait for all workers, and learn where tensors that they send belong."""
    agent.enter(range(world_size or 0))
    name, options = agent.info.name, agent.options
    if world_size:
        mine = name, device_count(), options.device_maps
        found = agent.gather("begin", list(range(world_size)), mine, options.rpc_timeout)
        _check_maps(list(found.values()))
        for other, _, maps in found.values():
            agent.reverse_maps[other] = {target: source for source, target in maps.get(name, {}).items()}


def _check_maps(workers: list[tuple[str, int, dict[str, _DeviceMap]]]) -> None:
    names = {name: count for name, count, _ in workers}
    for name, count, maps in workers:
        if not maps.keys() <= names.keys():
            raise ValueError(f"Node {name} has invalid target node names in its device maps\ndevice maps = {maps.keys()}\nnode names = {list(names)}")
        for target, devices in maps.items():
            for what, where, n in (("source", devices.keys(), count), ("target", devices.values(), names[target])):
                if any(d.type != "cpu" and not (d.type == "cuda" and 0 <= d.index < n) for d in where):
                    raise ValueError(f"Node {name} has {what} devices with invalid indices in its device map for {target}\ndevice map = {devices}\n"
                                     f"device count = {n}")


register_backend("TENSORPIPE", _options, _started)
