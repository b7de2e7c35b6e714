"""Neural networks: layers, parameters, initial values, functions, utilities."""
from torchlike.nn import attention, functional, grad, init, modules, parallel, parameter, quantized, utils
from torchlike.nn.modules import *  # noqa: F403
from torchlike.nn.modules import __all__ as _layers
from torchlike.nn.parallel import DataParallel
from torchlike.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

functional.grad = grad  # PyTorch's programs find it under either name

__all__ = [*_layers, "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter",
           "attention", "functional", "grad", "init", "modules", "parallel", "parameter", "quantized", "utils"]
