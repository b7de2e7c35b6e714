"""torch.xpu as in a torch without Intel GPUs: JAX has none, so questions answer no and the rest refuses."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NoReturn

from ._core.device import device as _device
from ._tensor import Tensor


def is_available() -> bool:
    """False: JAX has no Intel GPUs."""
    return False


def device_count() -> int:
    """None are there."""
    return 0


def is_initialized() -> bool:
    """Nothing to initialise."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Not without a GPU."""
    return False


def empty_cache() -> None:
    """Nothing is cached."""


def manual_seed(seed: int) -> None:
    """No generator to seed."""


manual_seed_all = manual_seed


def get_rng_state_all() -> list[Tensor]:
    """One state for each GPU: none."""
    return []


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """One state for each GPU: none."""


def memory_allocated(device: Any = None) -> int:
    """Nothing is allocated."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
default_generators = ()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Nothing to reset."""


reset_accumulated_memory_stats = reset_peak_memory_stats


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Nothing to count."""
    return {}


def memory_snapshot(mempool_id: Any = None) -> list[dict[str, Any]]:
    """No memory is held."""
    return []


def is_tf32_supported() -> bool:
    """Not without a GPU."""
    return False


def get_arch_list() -> list[str]:
    """Kernels for no architecture."""
    return []


def get_gencode_flags() -> str:
    """Kernels for no architecture."""
    return ""


def seed() -> None:
    """No generator to seed."""


seed_all = seed


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """Nothing to count."""
    return OrderedDict()


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise AssertionError("Torch not compiled with XPU enabled")


def set_rng_state(new_state: Tensor, device: Any = "xpu") -> None:
    """No generator to set."""


class device:
    """Another device inside of the block. NotImplementedError there, as none is; ValueError for a device of another kind."""

    def __init__(self, device: Any) -> None:
        if isinstance(device, (str, _device)) and _device(device).type != "xpu":
            raise ValueError(f"Expected a xpu device, but got: {device}")

    def __enter__(self) -> NoReturn:
        raise NotImplementedError("PyTorch was compiled without XPU support")

    def __exit__(self, *exc: object) -> None:
        pass


class device_of(device):
    """The device of a tensor inside of the block: a tensor is on none of these, so it stays what it is."""

    def __init__(self, obj: Tensor) -> None:
        pass

    def __enter__(self) -> None:
        pass


class Stream:
    """A queue of work, for annotations: RuntimeError (with a device NotImplementedError), as there is no GPU to do it."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        if device is not None:
            raise NotImplementedError("PyTorch was compiled without XPU support")
        raise RuntimeError("Tried to instantiate dummy base class Stream")


class Event:
    """A place in a queue of work, for annotations: RuntimeError, as there is no GPU."""

    def __init__(self, enable_timing: bool = False) -> None:
        raise RuntimeError("Tried to instantiate dummy base class Event")


class StreamContext:
    """Another stream inside of the block: none is there."""

    def __init__(self, stream: None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


stream = StreamContext


init = synchronize = current_device = set_device = get_device_name = get_device_properties = get_device_capability = _refuse
get_rng_state = current_stream = set_stream = mem_get_info = initial_seed = _refuse
can_device_access_peer = get_stream_from_external = get_per_process_memory_fraction = set_per_process_memory_fraction = _refuse
