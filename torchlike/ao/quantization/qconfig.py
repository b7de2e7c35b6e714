"""QConfig: which observers a layer's activations and weights get."""
from __future__ import annotations

from collections import namedtuple
from typing import Any

from ..._core import dtype as dt
from ...nn.modules.linear import Identity
from ...nn.modules.module import Module
from .fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from .observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
    ReuseInputObserver,
    _PartialWrapper,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Classes of observers, or what makes observers; ValueError for an observer itself."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError("QConfig received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override arguments to "
                             "constructor if needed")
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None
default_qconfig = QConfig(activation=default_observer, weight=default_weight_observer)
default_debug_qconfig = QConfig(weight=default_weight_observer, activation=default_debug_observer)
default_per_channel_qconfig = QConfig(activation=default_observer, weight=default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(activation=default_dynamic_quant_observer, weight=default_weight_observer)
float16_dynamic_qconfig = QConfig(activation=PlaceholderObserver.with_args(dtype=dt.float16, is_dynamic=True),
                                  weight=PlaceholderObserver.with_args(dtype=dt.float16))
float16_static_qconfig = QConfig(activation=PlaceholderObserver.with_args(dtype=dt.float16), weight=PlaceholderObserver.with_args(dtype=dt.float16))
per_channel_dynamic_qconfig = QConfig(activation=default_dynamic_quant_observer, weight=default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(activation=default_placeholder_observer, weight=default_float_qparams_observer)
default_reuse_input_qconfig = QConfig(activation=ReuseInputObserver, weight=NoopObserver)


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """Of layers whose inputs are quantized by a scale that was observed before, for one of PyTorch's engines. AssertionError for another one."""
    if backend not in ("fbgemm", "x86", "qnnpack", "onednn"):
        raise AssertionError(f"backend: {backend} not supported. backend must be one of ['fbgemm', 'x86', 'qnnpack', 'onednn']")
    if version != 0:
        raise AssertionError(f"Version number: {version} in get_default_qconfig is not supported. Version number must be 0")
    return QConfig(activation=HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86")),
                   weight=default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer)


def get_default_qat_qconfig(backend: str = "x86", version: int | None = 1) -> QConfig:
    """Of layers in training that knows of quantization, for one of PyTorch's engines; version 0 has other modules for the same. AssertionError for another engine."""
    if backend not in ("fbgemm", "x86", "qnnpack", "onednn"):
        raise AssertionError(f"backend: {backend} not supported. backend must be one of ['fbgemm', 'x86', 'qnnpack', 'onednn']")
    if version not in (0, 1):
        raise AssertionError(f"Version number: {version}in get_default_qat_qconfig is not supported. Version number must be 0 or 1")
    ranges = {} if backend == "onednn" else {"reduce_range": backend != "qnnpack"}
    make = FakeQuantize if version == 0 else FusedMovingAvgObsFakeQuantize
    weights = ((default_per_channel_weight_fake_quant, default_weight_fake_quant) if version == 0 else
               (default_fused_per_channel_wt_fake_quant, default_fused_wt_fake_quant))
    return QConfig(activation=make.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **ranges), weight=weights[backend == "qnnpack"])


default_symmetric_qnnpack_qconfig = QConfig(activation=HistogramObserver.with_args(dtype=dt.qint8, reduce_range=False, eps=2 ** -12),
                                            weight=weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(activation=HistogramObserver.with_args(dtype=dt.qint8, reduce_range=False, eps=2 ** -12),
                                                        weight=per_channel_weight_observer_range_neg_127_to_127)
_signed = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=dt.qint8, reduce_range=False,
                                                  eps=2 ** -12)
default_symmetric_qnnpack_qat_qconfig = QConfig(activation=_signed, weight=fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(activation=_signed, weight=fused_per_channel_wt_fake_quant_range_neg_127_to_127)
default_embedding_qat_qconfig = QConfig(activation=NoopObserver.with_args(dtype=dt.float32), weight=default_embedding_fake_quant)
default_quint8_weight_qconfig = QConfig(activation=HistogramObserver, weight=MinMaxObserver)
default_dynamic_qat_qconfig = QConfig(activation=default_dynamic_fake_quant, weight=default_weight_fake_quant)
default_weight_only_qconfig = QConfig(activation=Identity, weight=default_weight_fake_quant)
default_activation_only_qconfig = QConfig(activation=default_fake_quant, weight=Identity)
default_qat_qconfig_v2 = QConfig(activation=default_fused_act_fake_quant, weight=default_fused_wt_fake_quant)
default_qat_qconfig = QConfig(activation=default_fake_quant, weight=default_weight_fake_quant)


def _same_maker(a: Any, b: Any) -> bool:
    if isinstance(a, _PartialWrapper) and isinstance(b, _PartialWrapper):
        return a.p.func == b.p.func and a.p.args == b.p.args and a.p.keywords == b.p.keywords
    return a == b


def qconfig_equals(q1: QConfigAny, q2: QConfigAny) -> bool:
    """Whether both make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    try:
        return _same_maker(q1.activation, q2.activation) and _same_maker(q1.weight, q2.weight)
    except AttributeError:
        return q1 == q2

__all__ = ["QConfig", "QConfigAny", "default_activation_only_qconfig", "default_dynamic_qat_qconfig", "default_embedding_qat_qconfig",
           "default_per_channel_symmetric_qnnpack_qat_qconfig", "default_per_channel_symmetric_qnnpack_qconfig", "default_quint8_weight_qconfig",
           "default_symmetric_qnnpack_qat_qconfig", "default_symmetric_qnnpack_qconfig", "default_weight_only_qconfig",
           "default_debug_qconfig", "default_dynamic_qconfig", "default_per_channel_qconfig", "default_qat_qconfig",
           "default_qat_qconfig_v2", "default_qconfig", "default_reuse_input_qconfig", "float16_dynamic_qconfig", "float16_static_qconfig",
           "float_qparams_weight_only_qconfig", "get_default_qat_qconfig", "get_default_qconfig", "per_channel_dynamic_qconfig", "qconfig_equals"]
