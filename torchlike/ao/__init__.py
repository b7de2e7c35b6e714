"""torch.ao: what of it plain tensors need."""
from . import nn, quantization

__all__ = ["nn", "quantization"]
