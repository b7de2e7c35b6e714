"""What torch.cuda.amp and torch.cpu.amp share: autocast and the scaler of one device, deprecated as in torch."""
from __future__ import annotations

import warnings

from .autocast_mode import autocast as _autocast
from .grad_scaler import GradScaler as _GradScaler


def deprecated(device: str, name: str, now: str) -> None:
    """torch's warning, on the line that calls the older name."""
    warnings.warn(f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}({now})` instead.", FutureWarning, stacklevel=3)


class GradScaler(_GradScaler):
    """`torch.amp.GradScaler(device, ...)` of a subclass's device."""

    device_type: str

    def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000,
                 enabled: bool = True) -> None:
        deprecated(self.device_type, "GradScaler", f"'{self.device_type}', args...")
        super().__init__(self.device_type, init_scale, growth_factor, backoff_factor, growth_interval, enabled)


class autocast(_autocast):
    """`torch.amp.autocast(device, ...)` of a subclass's device."""

    device_type: str
    default_dtype: object = None

    def __init__(self, enabled: bool = True, dtype: object = ..., cache_enabled: bool = True) -> None:
        deprecated(self.device_type, "autocast", f"'{self.device_type}', args...")
        super().__init__(self.device_type, self.default_dtype if dtype is ... else dtype, enabled, cache_enabled)
