"""torch.ao.nn.quantized: layers of quantized tensors, and layers with quantized weights only (`dynamic`)."""
from ....nn.quantized import FloatFunctional, FXFloatFunctional
from . import dynamic, functional, modules, reference  # noqa: F401
from .modules import *  # noqa: F403

__all__ = ["FXFloatFunctional", "FloatFunctional", *modules.__all__]
