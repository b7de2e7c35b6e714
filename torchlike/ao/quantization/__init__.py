"""torch.ao.quantization: observers, configurations, and models made of quantized layers."""
from . import fake_quantize, observer, qconfig, quantization_mappings, stubs  # noqa: F401
from .fake_quantize import *  # noqa: F403
from .observer import *  # noqa: F403
from .observer import _ObserverBase, _PartialWrapper  # noqa: F401
from .qconfig import *  # noqa: F403
from .quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
)

from .fuse_modules import fuse_known_modules, fuse_modules  # isort: skip
from .quantize import convert, prepare, prepare_qat, propagate_qconfig_, quantize, quantize_dynamic, swap_module
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS", "DeQuantStub", "QuantStub", "QuantWrapper", "convert",
           "fuse_known_modules", "fuse_modules", "get_default_dynamic_quant_module_mappings", "get_default_qat_module_mappings",
           "get_default_qconfig_propagation_list", "get_default_static_quant_module_mappings", "prepare", "prepare_qat", "propagate_qconfig_", "quantize",
           "quantize_dynamic", "swap_module", *fake_quantize.__all__, *observer.__all__, *qconfig.__all__]
