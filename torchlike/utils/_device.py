"""torch.utils._device: a default device for a block, or for the calls of a function."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.device import device as Device
from ..autograd.grad_mode import context_decorator


class DeviceContext:
    """Inside the block factories make their tensors on a device; the same as `with torch.device(...)`."""

    def __init__(self, device: Any) -> None:
        self.device = Device(device)

    def __enter__(self) -> None:
        self.device.__enter__()

    def __exit__(self, *exc: object) -> None:
        self.device.__exit__(*exc)


def set_device(device: Any) -> Callable[[Callable], Callable]:
    """A decorator: the function, each call of which (or step, of a generator) has that default device."""
    return lambda func: context_decorator(lambda: Device(device), func)
