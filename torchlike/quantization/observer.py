"""torch.quantization.observer: the older name of torch.ao.quantization.observer."""
from ..ao.quantization.observer import *  # noqa: F403
