"""torch._C._fft: the functions of torch.fft under the names that PyTorch's C++ part gives them."""
from ._family import renamed

__getattr__ = renamed("fft")
