"""torch.cpu.amp: autocast and the scaler for the CPU, under their older names."""

import warnings

from .. import amp as _amp
from .._core.dtype import bfloat16


class GradScaler(_amp.GradScaler):
    """`torch.amp.GradScaler("cpu", ...)`; deprecated, as in torch."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            "`torch.cpu.amp.GradScaler(args...)` is deprecated. "
            "Please use `torch.amp.GradScaler('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


class autocast(_amp.autocast):
    """`torch.amp.autocast("cpu", ...)`; deprecated, as in torch."""

    def __init__(self, enabled: bool = True, dtype: object = bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", dtype, enabled, cache_enabled)
