"""torch.quantization.stubs: the older name of torch.ao.quantization.stubs."""
from ..ao.quantization.stubs import *  # noqa: F403
