"""torch.ao.nn.intrinsic.quantized.dynamic: layers with quantized weights and float inputs, with ReLU."""
from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
