"""Older names of torch's autocast switches, one per kind of device; each warns and calls the newer one."""
from __future__ import annotations

import warnings
from typing import Any

from . import autocast_mode as mode


def _older(name: str, newer: str, kind: str, function) -> None:
    def f(*args) -> Any:
        warnings.warn(f"torch.{name}() is deprecated. Please use torch.{newer}('{kind}') instead.", DeprecationWarning, stacklevel=2)
        return function(kind, *args)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"torch.{newer}('{kind}')."
    NAMES[name] = f


NAMES: dict = {}
_older("is_autocast_cpu_enabled", "is_autocast_enabled", "cpu", mode.is_autocast_enabled)
_older("set_autocast_cpu_enabled", "set_autocast_enabled", "cpu", mode.set_autocast_enabled)
for _word, _kind in (("cpu", "cpu"), ("gpu", "cuda")):
    _older(f"get_autocast_{_word}_dtype", "get_autocast_dtype", _kind, mode.get_autocast_dtype)
    _older(f"set_autocast_{_word}_dtype", "set_autocast_dtype", _kind, mode.set_autocast_dtype)
