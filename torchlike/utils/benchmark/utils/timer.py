"""torch.utils.benchmark.utils.timer."""
from .. import Language, Timer, timer

__all__ = ["Language", "Timer", "timer"]
