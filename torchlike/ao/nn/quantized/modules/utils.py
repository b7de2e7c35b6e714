"""Weights quantized as an observer of them says."""
from __future__ import annotations

from typing import Any

from ....._core import dtype as dt
from ....._public import FUNCTIONS
from ....._quantized.kernels import LIMITS
from ....._tensor import Tensor


def _quantize_weight(float_wt: Tensor, observer: Any) -> Tensor:
    """The weight as qint8 within the observer's integers, by the scale and zero point that it calculates."""
    scale, zero_point = observer.calculate_qparams()
    observer = getattr(observer, "activation_post_process", observer)  # of a fake quantization
    made = FUNCTIONS["quantize_per_tensor"](float_wt, float(scale), int(zero_point), dt.qint8) if observer.qscheme.name.startswith("per_tensor") else \
        FUNCTIONS["quantize_per_channel"](float_wt, scale.to(dt.float64), zero_point.to(dt.int64), observer.ch_axis, dt.qint8)
    if (observer.quant_min, observer.quant_max) != LIMITS["qint8"]:
        made = made._like(made.int_repr().clamp(observer.quant_min, observer.quant_max))
    return made
