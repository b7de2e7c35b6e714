"""torch.ao.nn.quantized: arithmetic as modules, and layers with quantized weights (`dynamic`)."""
from ....nn.quantized import FloatFunctional, FXFloatFunctional
from . import dynamic, modules  # noqa: F401

__all__ = ["FXFloatFunctional", "FloatFunctional"]
