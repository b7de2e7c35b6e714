"""torch.quantization.fake_quantize: the older name of torch.ao.quantization.fake_quantize."""
from ..ao.quantization.fake_quantize import *  # noqa: F403
