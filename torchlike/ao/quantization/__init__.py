"""torch.ao.quantization: observers, configurations, and models made of quantized layers; `quantize_fx`, of whole models by their graphs."""
from typing import Any as _Any

from . import fake_quantize, observer, qconfig, quantization_mappings, stubs  # noqa: F401
from .fake_quantize import *  # noqa: F403
from .observer import *  # noqa: F403
from .observer import _ObserverBase, _PartialWrapper  # noqa: F401
from .qconfig import *  # noqa: F403
from .quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
    get_default_compare_output_module_list,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    get_dynamic_quant_module_class,
    get_static_quant_module_class,
)

from .fuse_modules import fuse_known_modules, fuse_modules, fuse_modules_qat  # isort: skip
from . import fuser_method_mappings, qconfig_mapping  # noqa: F401
from .fuser_method_mappings import *  # noqa: F403
from .qconfig_mapping import *  # noqa: F403
from .quant_type import QuantType
from .quantize import convert, prepare, prepare_qat, propagate_qconfig_, quantize, quantize_dynamic, swap_module
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS", "DeQuantStub", "QuantStub", "QuantWrapper", "convert",
           "QuantType", "fuse_known_modules", "fuse_modules", "fuse_modules_qat", "get_default_compare_output_module_list",
           "get_default_dynamic_quant_module_mappings", "get_default_qat_module_mappings",
           "get_default_qconfig_propagation_list", "get_default_static_quant_module_mappings",
           "get_default_static_quant_reference_module_mappings", "get_dynamic_quant_module_class", "get_static_quant_module_class",
           "prepare", "prepare_qat", "propagate_qconfig_", "quantize",
           "quantize_dynamic", "swap_module", *fake_quantize.__all__, *fuser_method_mappings.__all__, *observer.__all__, *qconfig.__all__,
           *qconfig_mapping.__all__]


def __getattr__(name: str) -> _Any:
    if name in ("fx", "quantize_fx"):  # loaded when a program asks for them
        import importlib
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
