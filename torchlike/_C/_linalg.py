"""torch._C._linalg: the functions of torch.linalg under the names that PyTorch's C++ part gives them."""
from ._family import renamed

__getattr__ = renamed("linalg")
