"""Which module takes the place of which."""
from __future__ import annotations

from ...nn.modules import activation, batchnorm, conv, instancenorm, normalization, rnn
from ...nn.modules.container import Sequential
from ...nn.modules.dropout import Dropout
from ...nn.modules.linear import Linear, NonDynamicallyQuantizableLinear
from ...nn.quantized import FloatFunctional
from ..nn import intrinsic, qat
from ..nn import quantized as static
from ..nn.quantized import dynamic
from .stubs import DeQuantStub, QuantStub

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[type, type] = {
    QuantStub: static.Quantize, DeQuantStub: static.DeQuantize, conv.Conv1d: static.Conv1d, conv.Conv2d: static.Conv2d, conv.Conv3d: static.Conv3d,
    activation.ReLU6: static.ReLU6, activation.Hardswish: static.Hardswish, activation.LeakyReLU: static.LeakyReLU, activation.ELU: static.ELU,
    batchnorm.BatchNorm2d: static.BatchNorm2d, batchnorm.BatchNorm3d: static.BatchNorm3d, Dropout: static.Dropout,
    NonDynamicallyQuantizableLinear: static.Linear, Linear: static.Linear, FloatFunctional: static.QFunctional,
    intrinsic.ConvReLU1d: intrinsic.quantized.ConvReLU1d, intrinsic.ConvReLU2d: intrinsic.quantized.ConvReLU2d,
    intrinsic.ConvReLU3d: intrinsic.quantized.ConvReLU3d, intrinsic.LinearReLU: intrinsic.quantized.LinearReLU,
}

DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[type, type] = {
    rnn.GRUCell: dynamic.GRUCell, Linear: dynamic.Linear, rnn.LSTM: dynamic.LSTM, rnn.GRU: dynamic.GRU, rnn.LSTMCell: dynamic.LSTMCell,
    rnn.RNNCell: dynamic.RNNCell, NonDynamicallyQuantizableLinear: dynamic.Linear,
}


def get_default_dynamic_quant_module_mappings() -> dict[type, type]:
    """Of layers whose inputs are quantized as they come; a table of its own at each call."""
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)

_TRAINED = intrinsic.qat
DEFAULT_QAT_MODULE_MAPPINGS: dict[type, type] = {
    conv.Conv2d: qat.Conv2d, conv.Conv3d: qat.Conv3d, Linear: qat.Linear, NonDynamicallyQuantizableLinear: qat.Linear,
    intrinsic.ConvBn1d: _TRAINED.ConvBn1d, intrinsic.ConvBn2d: _TRAINED.ConvBn2d, intrinsic.ConvBn3d: _TRAINED.ConvBn3d,
    intrinsic.ConvBnReLU1d: _TRAINED.ConvBnReLU1d, intrinsic.ConvBnReLU2d: _TRAINED.ConvBnReLU2d, intrinsic.ConvBnReLU3d: _TRAINED.ConvBnReLU3d,
    intrinsic.ConvReLU2d: _TRAINED.ConvReLU2d, intrinsic.ConvReLU3d: _TRAINED.ConvReLU3d, intrinsic.LinearReLU: _TRAINED.LinearReLU,
    intrinsic.LinearBn1d: _TRAINED.LinearBn1d,
}
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS |= {
    normalization.GroupNorm: static.GroupNorm, normalization.LayerNorm: static.LayerNorm, instancenorm.InstanceNorm1d: static.InstanceNorm1d,
    instancenorm.InstanceNorm2d: static.InstanceNorm2d, instancenorm.InstanceNorm3d: static.InstanceNorm3d, activation.PReLU: static.PReLU,
    intrinsic.BNReLU2d: intrinsic.quantized.BNReLU2d, intrinsic.BNReLU3d: intrinsic.quantized.BNReLU3d,
    _TRAINED.ConvBn1d: static.Conv1d, _TRAINED.ConvBn2d: static.Conv2d, _TRAINED.ConvBn3d: static.Conv3d,
    _TRAINED.ConvBnReLU1d: intrinsic.quantized.ConvReLU1d, _TRAINED.ConvBnReLU2d: intrinsic.quantized.ConvReLU2d,
    _TRAINED.ConvBnReLU3d: intrinsic.quantized.ConvReLU3d, _TRAINED.ConvReLU2d: intrinsic.quantized.ConvReLU2d,
    _TRAINED.ConvReLU3d: intrinsic.quantized.ConvReLU3d, _TRAINED.LinearReLU: intrinsic.quantized.LinearReLU, _TRAINED.LinearBn1d: static.Linear,
    qat.Linear: static.Linear, qat.Conv2d: static.Conv2d, qat.Conv3d: static.Conv3d,
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS[intrinsic.LinearReLU] = intrinsic.quantized.dynamic.LinearReLU


def get_default_qat_module_mappings() -> dict[type, type]:
    """Of layers whose weights are rounded in training; a table of its own at each call."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_default_static_quant_module_mappings() -> dict[type, type]:
    """Of layers whose inputs are quantized by scales that were observed before; a table of its own at each call."""
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_qconfig_propagation_list() -> set[type]:
    """The classes of modules whose results are observed."""
    return {*DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_QAT_MODULE_MAPPINGS, *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, Sequential}


def get_static_quant_module_class(float_module_class: type, additional_static_quant_mapping: dict[type, type] | None = None,
                                  is_reference: bool = False) -> type:
    """The quantized class of a float one, with `additional_static_quant_mapping` in front. AssertionError where there is none."""
    table = get_default_static_quant_reference_module_mappings() if is_reference else DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    found = (table | (additional_static_quant_mapping or {})).get(float_module_class)
    if found is None:
        raise AssertionError(f"Floating point module class {float_module_class} does not have a corresponding quantized module class")
    return found


def get_dynamic_quant_module_class(float_module_class: type, additional_dynamic_quant_mapping: dict[type, type] | None = None) -> type:
    """The class with quantized weights of a float one. AssertionError where there is none."""
    found = (DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS | (additional_dynamic_quant_mapping or {})).get(float_module_class)
    if found is None:
        raise AssertionError(f"Floating point module class {float_module_class} does not have a corresponding quantized module class")
    return found


def get_default_static_quant_reference_module_mappings() -> dict[type, type]:
    """Of layers that say in floats what quantized ones compute; a table of its own at each call."""
    forms = static.reference
    return {QuantStub: static.Quantize, DeQuantStub: static.DeQuantize, Linear: forms.Linear, conv.Conv1d: forms.Conv1d, conv.Conv2d: forms.Conv2d,
            conv.Conv3d: forms.Conv3d}


def get_default_compare_output_module_list() -> set[type]:
    """The classes whose results tools compare: float layers with a quantized form, those forms, and the ones for training."""
    return {*DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS.values(), *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
            *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS.values(), *DEFAULT_QAT_MODULE_MAPPINGS, *DEFAULT_QAT_MODULE_MAPPINGS.values()}
