"""torch.utils.benchmark.utils.compare."""
from ..compare import Colorize, Compare

__all__ = ["Colorize", "Compare"]
