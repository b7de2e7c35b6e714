"""torch._C._fft: the functions of torch.fft under the names that PyTorch's C++ part gives them."""
import sys as _sys


def __getattr__(name: str):
    family = _sys.modules["torchlike.fft"]
    own = name.removeprefix("fft_")
    if own != name and hasattr(family, own):
        return getattr(family, own)
    raise AttributeError(f"module 'torch._C._fft' has no attribute {name!r}")
