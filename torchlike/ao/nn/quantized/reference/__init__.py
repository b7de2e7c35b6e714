"""torch.ao.nn.quantized.reference: layers that say in floats what quantized ones compute."""
from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
