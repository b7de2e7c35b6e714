"""torch._C._special: the functions of torch.special under the names that PyTorch's C++ part gives them."""
from ._family import renamed

__getattr__ = renamed("special")
