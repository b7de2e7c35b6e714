"""Observers, and those with the arguments that configurations use."""
from __future__ import annotations

from ..._core import dtype as dt
from . import _histogram, _observers
from ._histogram import HistogramObserver
from ._observers import (  # noqa: F401  (for other modules)
    _CHANNELS_SYMMETRIC,
    _FLOAT_ZERO_POINTS,
    _SYMMETRIC,
    FixedQParamsObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
    UniformQuantizationObserverBase,
    _ObserverBase,
    _PartialWrapper,
    _WithArguments,
    get_observer_state_dict,
)

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=dt.qint8, qscheme=_SYMMETRIC)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(dtype=dt.qint8, qscheme=_SYMMETRIC, quant_min=-127, quant_max=127, eps=2 ** -12)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(dtype=dt.qint8, qscheme=_CHANNELS_SYMMETRIC)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(dtype=dt.qint8, qscheme=_CHANNELS_SYMMETRIC, quant_min=-127, quant_max=127,
                                                                                      eps=2 ** -12)
default_dynamic_quant_observer = PlaceholderObserver.with_args(dtype=dt.quint8, quant_min=0, quant_max=255, is_dynamic=True)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(dtype=dt.quint8, qscheme=_FLOAT_ZERO_POINTS, ch_axis=0)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(scale=2.0 / 256.0, zero_point=128, dtype=dt.quint8, quant_min=0, quant_max=255)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(scale=1.0 / 256.0, zero_point=0, dtype=dt.quint8, quant_min=0, quant_max=255)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)

for _module in (_observers, _histogram):  # where PyTorch has the classes
    for _x in vars(_module).values():
        if isinstance(_x, type) and _x.__module__ == _module.__name__:
            _x.__module__ = __name__

__all__ = ["FixedQParamsObserver", "HistogramObserver", "MinMaxObserver", "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver",
           "NoopObserver", "ObserverBase", "PerChannelMinMaxObserver", "PlaceholderObserver", "RecordingObserver", "ReuseInputObserver",
           "UniformQuantizationObserverBase", "default_affine_fixed_qparams_observer", "default_debug_observer", "default_dynamic_quant_observer",
           "default_fixed_qparams_range_0to1_observer", "default_fixed_qparams_range_neg1to1_observer", "default_float_qparams_observer",
           "default_histogram_observer", "default_observer", "default_per_channel_weight_observer", "default_placeholder_observer",
           "default_reuse_input_observer", "default_symmetric_fixed_qparams_observer", "default_weight_observer", "get_observer_state_dict",
           "per_channel_weight_observer_range_neg_127_to_127", "weight_observer_range_neg_127_to_127"]
