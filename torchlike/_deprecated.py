"""Names of torch that it no longer wants used: asking for one warns."""
from __future__ import annotations

import warnings
from typing import Any

__all__ = ["NAMES", "asked"]

_SWITCHES = {"has_mps": ("mps", "is_built"), "has_cuda": ("cuda", "is_built"), "has_cudnn": ("cudnn", "is_available"), "has_mkldnn": ("mkldnn", "is_available")}
NAMES = (*_SWITCHES, "set_vital")


def asked(name: str) -> Any:
    """What a program gets that asks for one of NAMES."""
    if name == "set_vital":
        warnings.warn(f"'{name}' is deprecated, please do not call", stacklevel=3)
        return lambda *args: None
    from . import backends
    part, question = _SWITCHES[name]
    warnings.warn(f"'{name}' is deprecated, please use 'torch.backends.{part}.{question}()'", stacklevel=3)
    return getattr(getattr(backends, part), question)()
