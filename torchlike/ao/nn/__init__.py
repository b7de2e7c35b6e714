"""torch.ao.nn."""
from . import quantized  # isort: skip
from . import intrinsic, qat

__all__ = ["intrinsic", "qat", "quantized"]
