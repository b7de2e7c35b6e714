"""torch.random: the default generator, and a context that restores it."""
from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator  # noqa: F401  (nemo takes Generator from here)

from .ops.random import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


@contextlib.contextmanager
def fork_rng(devices=None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices", device_type: str = "cuda") -> Iterator[None]:
    """Inside, draws do not advance the default generator of the code outside."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
