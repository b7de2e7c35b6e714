"""torch.ao.nn.intrinsic.quantized: quantized layers with ReLU."""
from . import modules  # noqa: F401
from .modules import ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]
