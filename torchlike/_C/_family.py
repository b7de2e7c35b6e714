"""Families of functions, such as torch.linalg, as PyTorch's C++ part names them: `linalg_norm`."""
import sys
from collections.abc import Callable


def renamed(family: str) -> Callable[[str], Callable]:
    """The `__getattr__` of `torch._C._<family>`."""
    def find(name: str) -> Callable:
        own = name.removeprefix(f"{family}_")
        found = None if own == name else getattr(sys.modules[f"torchlike.{family}"], own, None)
        if found is None:
            raise AttributeError(f"module 'torch._C._{family}' has no attribute {name!r}")
        return found
    return find
