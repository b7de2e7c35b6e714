"""Which GPU is meant, and what it is."""
from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import jax

from .._core import device as dev
from .._core.device import DeviceLike

NOT_THERE = "Torch not compiled with CUDA enabled"
_current = [0]


def is_available() -> bool:
    """Whether JAX has a GPU."""
    return dev.cuda_available()


def device_count() -> int:
    """The number of GPUs that JAX sees."""
    return dev.device_count("cuda")


def need(kind: type[Exception] = AssertionError, message: str = NOT_THERE) -> None:
    """Raise torch's error when there is no GPU."""
    if not is_available():
        raise kind(message)


def index_of(device: DeviceLike | None, optional: bool = True) -> int:
    """The index of a GPU given as None, a number, a name or a device."""
    if device is None and optional:
        return _current[0]
    if isinstance(device, int):
        return device
    made = dev.device(device)
    if made.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {made}")
    return _current[0] if made.index is None else made.index


def jax_device(device: DeviceLike | None = None) -> Any:
    """The JAX device of a GPU."""
    need()
    index = index_of(device)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    return jax.local_devices(backend="cuda")[index]


def current_device() -> int:
    """The index of the selected GPU."""
    need()
    return _current[0]


def set_device(device: DeviceLike | None) -> None:
    """Select the GPU that functions of torch.cuda mean when they are given none."""
    need(AttributeError)
    index = index_of(device)
    if index >= 0:
        _current[0] = index


class device(contextlib.ContextDecorator):
    """Select a GPU inside the block; a negative index selects nothing."""

    def __init__(self, device: DeviceLike | None) -> None:
        self.idx = index_of(device, optional=False)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            need(RuntimeError, "PyTorch was compiled without CUDA support")
        self.prev_idx = _current[0]
        if self.idx >= 0:
            _current[0] = self.idx

    def __exit__(self, *exc: object) -> None:
        _current[0] = self.prev_idx


class device_of(device):
    """Select the GPU of a tensor inside the block; nothing for tensors elsewhere."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == "cuda" else -1)


class _CudaDeviceProperties(NamedTuple):
    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int = 32


def get_device_name(device: DeviceLike | None = None) -> str:
    """The GPU's name."""
    return jax_device(device).device_kind


def get_device_capability(device: DeviceLike | None = None) -> tuple[int, int]:
    """The GPU's compute capability."""
    major, _, minor = str(jax_device(device).compute_capability).partition(".")
    return int(major), int(minor or 0)


def get_device_properties(device: DeviceLike | None = None) -> _CudaDeviceProperties:
    """What JAX knows of the GPU; `total_memory` is what this process may use of it."""
    found = jax_device(device)
    limit = int((found.memory_stats() or {}).get("bytes_limit", 0))
    return _CudaDeviceProperties(found.device_kind, *get_device_capability(device), limit, int(getattr(found, "core_count", 0)))


def get_arch_list() -> list[str]:
    """The architectures of the GPUs here: XLA compiles for what it finds."""
    return sorted({"sm_{}{}".format(*get_device_capability(i)) for i in range(device_count())})


def get_gencode_flags() -> str:
    """The architectures as NVIDIA's compiler is told of them."""
    return " ".join(f"-gencode compute=compute_{number},code={kind}_{number}" for kind, number in (arch.split("_") for arch in get_arch_list()))


def can_device_access_peer(device: DeviceLike | None, peer_device: DeviceLike | None) -> bool:
    """Whether two GPUs exchange data: under XLA all of one process do."""
    return jax_device(device) != jax_device(peer_device)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the GPU multiplies in TF32."""
    return is_available() and get_device_capability()[0] >= 8
