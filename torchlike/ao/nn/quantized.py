"""torch.ao.nn.quantized: torch.nn.quantized under its newer name."""
from ...nn.quantized import FloatFunctional, FXFloatFunctional

__all__ = ["FXFloatFunctional", "FloatFunctional"]
