"""Settings of torch.distributed.rpc."""

from __future__ import annotations

import numbers
from typing import Any

from ..._core.device import device
from .constants import DEFAULT_INIT_METHOD, DEFAULT_NUM_WORKER_THREADS, DEFAULT_RPC_TIMEOUT_SEC

__all__ = ["TensorPipeRpcBackendOptions"]

_DeviceMap = dict[device, device]


class RpcBackendOptions:
    """What every backend is told: the timeout of calls in seconds (0: none), and where the workers meet."""

    def __init__(self, rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC, init_method: str = DEFAULT_INIT_METHOD) -> None:
        _checked("rpc_timeout", rpc_timeout, numbers.Real)
        _checked("init_method", init_method, str)
        if not rpc_timeout >= 0:
            raise RuntimeError("RPC Timeout must be non-negative")
        self.rpc_timeout, self.init_method = float(rpc_timeout), init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """Settings of the one backend that there is: as many threads run requests, calls fail after `rpc_timeout` seconds (0: never), and
    `device_maps` says for each callee where tensors of this worker's devices go."""

    def __init__(
        self,
        *,
        num_worker_threads: int = DEFAULT_NUM_WORKER_THREADS,
        rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = DEFAULT_INIT_METHOD,
        device_maps: dict[str, dict[Any, Any]] | None = None,
        devices: list[Any] | None = None,
        _transports: list | None = None,
        _channels: list | None = None,
    ) -> None:
        super().__init__(rpc_timeout, init_method)
        _checked("num_worker_threads", num_worker_threads, numbers.Integral)
        if num_worker_threads <= 0:
            raise RuntimeError(f"num_worker_threads must be positive, got {num_worker_threads}")
        self.num_worker_threads = num_worker_threads
        self.device_maps = {name: _device_map(given) for name, given in (device_maps or {}).items()}
        self.devices = _devices(devices or [])

    def set_device_map(self, to: str, device_map: dict[Any, Any]) -> None:
        """Tensors on each key go to its value at worker `to`; ValueError where two keys would go to one place, or a key is known already."""
        given, known = _device_map(device_map), self.device_maps.setdefault(to, {})
        for source, target in given.items():
            if known.get(source, target) != target:
                raise ValueError(f"`set_device_map` only supports 1-to-1 mapping, trying to map {source} to {target} and {known[source]}")
        known.update(given)

    def set_devices(self, devices: list[Any]) -> None:
        self.devices = _devices(devices)


def _checked(name: str, given: Any, kind: type) -> None:
    if not isinstance(given, kind):
        raise TypeError(f"__init__(): incompatible constructor arguments: {name}={given!r}")


def _device_map(given: dict[Any, Any]) -> _DeviceMap:
    made: _DeviceMap = {}
    for source, target in ((device(s), device(t)) for s, t in given.items()):
        if target in made.values():
            other = next(s for s, t in made.items() if t == target)
            raise ValueError(f"`device_map` only supports 1-to-1 mapping, trying to map {source} and {other} to {target}")
        made[source] = target
    return made


def _devices(given: list[Any]) -> list[device]:
    made = [device(d) for d in given]
    for d in made:
        if d.type != "cuda":
            raise ValueError(f"`set_devices` expect a list of CUDA devices, but got device type {d.type}.")
    return made
