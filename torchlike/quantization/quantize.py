"""torch.quantization.quantize: the older name of torch.ao.quantization.quantize."""
from ..ao.quantization.quantize import *  # noqa: F403
