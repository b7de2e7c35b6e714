"""torch.quantization.fuse_modules: the older name of torch.ao.quantization.fuse_modules."""
from ..ao.quantization.fuse_modules import *  # noqa: F403
