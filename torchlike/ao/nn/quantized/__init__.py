"""torch.ao.nn.quantized: layers of quantized tensors, and layers with quantized weights only (`dynamic`)."""
from ....nn.quantized import FloatFunctional, FXFloatFunctional
from . import dynamic, modules  # noqa: F401
from .modules import Conv1d, Conv2d, Conv3d, DeQuantize, Dropout, Linear, QFunctional, Quantize

__all__ = ["Conv1d", "Conv2d", "Conv3d", "DeQuantize", "Dropout", "FXFloatFunctional", "FloatFunctional", "Linear", "QFunctional", "Quantize"]
