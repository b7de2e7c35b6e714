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

    def __exit__(self, *exc: object) -> bool:
        return False


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
