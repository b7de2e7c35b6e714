"""torch.quantization.quantize_fx: the older name of torch.ao.quantization.quantize_fx."""
from ..ao.quantization.quantize_fx import *  # noqa: F403
