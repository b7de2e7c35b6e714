"""torch._C._nn: the functions of torch.nn.functional that PyTorch keeps in its C++ part."""
import sys as _sys

from ..nn.modules.module import _parse_to  # noqa: F401


def __getattr__(name: str):
    from .._torch_names import NN

    if name in NN:
        return getattr(_sys.modules["torchlike.nn.functional"], NN[name])
    raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
