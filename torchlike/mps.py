"""torch.mps as in a torch without Apple GPUs: JAX has none here, so questions answer no and the rest refuses."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def is_available() -> bool:
    """False: JAX has no Apple GPUs."""
    return False


def device_count() -> int:
    """None are there."""
    return 0


def manual_seed(seed: int) -> None:
    """No generator to seed."""


def _refusing(what: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"Cannot execute {what}() without MPS backend.")
    return refuse


synchronize, empty_cache = _refusing("deviceSynchronize"), _refusing("emptyCache")
current_allocated_memory, driver_allocated_memory = _refusing("getCurrentAllocatedMemory"), _refusing("getDriverAllocatedMemory")
recommended_max_memory, set_per_process_memory_fraction = _refusing("getRecommendedMaxMemory"), _refusing("setMemoryFraction")
get_rng_state = set_rng_state = seed = _refusing("getDefaultGenerator")
