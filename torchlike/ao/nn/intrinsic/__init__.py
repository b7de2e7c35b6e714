"""torch.ao.nn.intrinsic: layers and what follows them as one module, in floats and quantized (`quantized`)."""
from . import modules, qat, quantized  # noqa: F401
from .modules import ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]
