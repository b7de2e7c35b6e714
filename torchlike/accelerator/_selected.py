"""Which accelerator this process has, and which of its devices is selected."""
from __future__ import annotations

from typing import Any

from .._core.device import canonical, device_count

index = [0]


def kind() -> str | None:
    """'cuda' or 'tpu', None without either."""
    return next((kind for kind in ("cuda", "tpu") if device_count(kind)), None)


def need() -> str:
    """The same, or torch's error."""
    found = kind()
    if found is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return found


def at(device: Any) -> int:
    """The index of a device given as None (the selected one), a number, a name or a device."""
    need()
    return index[0] if device is None else device if isinstance(device, int) else (canonical(device).index or 0)
