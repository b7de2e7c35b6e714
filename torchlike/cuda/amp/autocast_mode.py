"""Autocast under its older names."""
from __future__ import annotations

from collections.abc import Callable

from ... import amp as _amp
from ...amp import _older_names

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(_older_names.autocast):  # noqa: N801  (torch's name)
    """`torch.amp.autocast("cuda", ...)`; deprecated, as in torch."""

    device_type = "cuda"


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: object = None) -> Callable:
    """`torch.amp.custom_fwd(..., device_type="cuda")`; deprecated, as in torch."""
    _older_names.deprecated("cuda", "custom_fwd", "args..., device_type='cuda'")
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable) -> Callable:
    """`torch.amp.custom_bwd(..., device_type="cuda")`; deprecated, as in torch."""
    _older_names.deprecated("cuda", "custom_bwd", "args..., device_type='cuda'")
    return _amp.custom_bwd(bwd, device_type="cuda")
