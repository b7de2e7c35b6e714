"""torch.ao: what of it plain tensors need."""
from . import nn

__all__ = ["nn"]
