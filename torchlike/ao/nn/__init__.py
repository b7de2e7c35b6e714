"""torch.ao.nn."""
from . import quantized  # isort: skip
from . import intrinsic

__all__ = ["intrinsic", "quantized"]
