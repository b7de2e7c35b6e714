"""torch.ao.nn.intrinsic.quantized: quantized layers with ReLU; with float inputs, `dynamic`."""
from . import dynamic, modules  # noqa: F401
from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
