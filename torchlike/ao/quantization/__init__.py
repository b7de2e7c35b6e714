"""torch.ao.quantization: observers, configurations, and models made of layers whose weights are quantized."""
from . import fake_quantize, observer, qconfig, quantization_mappings, quantize, stubs  # noqa: F401
from .fake_quantize import FakeQuantizeBase
from .observer import *  # noqa: F403
from .observer import _ObserverBase, _PartialWrapper  # noqa: F401
from .qconfig import *  # noqa: F403
from .quantization_mappings import DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, get_default_dynamic_quant_module_mappings  # noqa: F401
from .quantize import convert, propagate_qconfig_, quantize_dynamic, swap_module  # noqa: F401
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DeQuantStub", "FakeQuantizeBase", "QuantStub", "QuantWrapper", "convert",
           "get_default_dynamic_quant_module_mappings", "propagate_qconfig_", "quantize_dynamic", "swap_module", *observer.__all__, *qconfig.__all__]
