"""torch.ao: what of it plain tensors need."""
from . import nn, pruning, quantization

__all__ = ["nn", "pruning", "quantization"]
