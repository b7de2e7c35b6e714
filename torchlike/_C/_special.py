"""torch._C._special: the functions of torch.special under the names that PyTorch's C++ part gives them."""
import sys as _sys


def __getattr__(name: str):
    family = _sys.modules["torchlike.special"]
    own = name.removeprefix("special_")
    if own != name and hasattr(family, own):
        return getattr(family, own)
    raise AttributeError(f"module 'torch._C._special' has no attribute {name!r}")
