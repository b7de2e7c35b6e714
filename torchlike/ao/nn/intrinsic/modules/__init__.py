"""Float modules of several layers."""
from .fused import ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU, _FusedModule  # noqa: F401

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]
