"""torch.ao.nn.qat: layers that round their weights as quantized ones would, for training."""
from . import modules  # noqa: F401
from .modules import Conv1d, Conv2d, Conv3d, Linear

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Linear"]
