"""torch.cuda.amp: autocast and the scaler under their older names."""

import warnings
from collections.abc import Callable

from .. import amp as _amp


class GradScaler(_amp.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`; deprecated, as in torch."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        warnings.warn(
            "`torch.cuda.amp.GradScaler(args...)` is deprecated. "
            "Please use `torch.amp.GradScaler('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


class autocast(_amp.autocast):
    """`torch.amp.autocast("cuda", ...)`; deprecated, as in torch."""

    def __init__(self, enabled: bool = True, dtype: object = None, cache_enabled: bool = True) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", dtype, enabled, cache_enabled)


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: object = None) -> Callable:
    """`torch.amp.custom_fwd(..., device_type="cuda")`; deprecated, as in torch."""
    warnings.warn(
        "`torch.cuda.amp.custom_fwd(args...)` is deprecated. "
        "Please use `torch.amp.custom_fwd(args..., device_type='cuda')` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable) -> Callable:
    """`torch.amp.custom_bwd(..., device_type="cuda")`; deprecated, as in torch."""
    warnings.warn(
        "`torch.cuda.amp.custom_bwd(args...)` is deprecated. "
        "Please use `torch.amp.custom_bwd(args..., device_type='cuda')` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return _amp.custom_bwd(bwd, device_type="cuda")
