"""One call for each of several modules."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlike.nn.modules.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(modules: Sequence[Module], inputs: Sequence[Any], kwargs_tup: Sequence[dict[str, Any]] | None = None,
                   devices: Sequence[Any] | None = None) -> list[Any]:
    """[module(*input, **kwargs)]. Calls are recorded one after the other, and XLA runs those of different devices side by side."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    words = kwargs_tup if kwargs_tup is not None else ({},) * len(modules)
    if len(words) != len(modules):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of kwargs_tup {len(words)}")
    if devices is not None and len(devices) != len(modules):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of devices {len(devices)}")
    return [module(*(given if isinstance(given, (list, tuple)) else (given,)), **more) for module, given, more in zip(modules, inputs, words)]
