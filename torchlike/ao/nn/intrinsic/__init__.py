"""torch.ao.nn.intrinsic: layers and what follows them as one module, in floats and quantized (`quantized`)."""
from . import modules, qat, quantized  # noqa: F401
from .modules import *  # noqa: F403
from .modules import __all__  # noqa: F401
