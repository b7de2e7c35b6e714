"""torch.cpu.amp: autocast and the scaler for the CPU, under their older names."""
from __future__ import annotations

from .._core.dtype import bfloat16
from ..amp import _older_names


class GradScaler(_older_names.GradScaler):
    """`torch.amp.GradScaler("cpu", ...)`; deprecated, as in torch."""

    device_type = "cpu"


class autocast(_older_names.autocast):
    """`torch.amp.autocast("cpu", ...)`; deprecated, as in torch."""

    device_type, default_dtype = "cpu", bfloat16
