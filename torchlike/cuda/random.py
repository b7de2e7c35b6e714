"""torch.cuda's random numbers: one generator serves all devices, so its state stands for every GPU's."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._tensor import Tensor
from ..ops import random as _random
from ._devices import device_count, is_available, need

_default = _random.default_generator


def manual_seed(seed: int) -> None:
    """Start the generator from a seed; nothing without a GPU, as in torch."""
    seed = int(seed)
    if is_available():
        _random.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Start the generator from the system's entropy."""
    if is_available():
        _random.seed()


seed_all = seed


def initial_seed() -> int:
    """The generator's seed."""
    need()
    return _random.initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The generator's state."""
    need()
    return _random.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """The state, once for each GPU."""
    return [_random.get_rng_state() for _ in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Put the generator in a state; nothing without a GPU, as in torch."""
    if is_available():
        _random.set_rng_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Put the generator in the first of the states."""
    for state in list(new_states)[:1]:
        set_rng_state(state)
