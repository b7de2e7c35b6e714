"""torch.quantization.fuser_method_mappings: the older name of torch.ao.quantization.fuser_method_mappings."""
from ..ao.quantization.fuser_method_mappings import *  # noqa: F403
