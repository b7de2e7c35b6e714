"""torch.quantization.quant_type: the older name of torch.ao.quantization.quant_type."""
from ..ao.quantization.quant_type import *  # noqa: F403
