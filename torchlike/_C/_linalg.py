"""torch._C._linalg: the functions of torch.linalg under the names that PyTorch's C++ part gives them."""
import sys as _sys


def __getattr__(name: str):
    family = _sys.modules["torchlike.linalg"]
    own = name.removeprefix("linalg_")
    if own != name and hasattr(family, own):
        return getattr(family, own)
    raise AttributeError(f"module 'torch._C._linalg' has no attribute {name!r}")
