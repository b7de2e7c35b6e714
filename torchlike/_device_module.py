"""torch.get_device_module: torch.cuda, torch.cpu or another module, by device."""
from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from . import _alias
from ._core.device import device as _device
from .accelerator import current_accelerator


def get_device_module(device: Any = None) -> ModuleType:
    """The module of functions for a kind of device; by default that of the accelerator, or of the CPU."""
    if device is None:
        device = current_accelerator() or "cpu"
    if not isinstance(device, (str, _device)):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = _device(device).type
    if kind == "meta":
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return importlib.import_module(_alias._own(f"torch.{kind}"))
