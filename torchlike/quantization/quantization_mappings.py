"""torch.quantization.quantization_mappings: the older name of torch.ao.quantization.quantization_mappings."""
from ..ao.quantization.quantization_mappings import *  # noqa: F403
