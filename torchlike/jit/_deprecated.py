"""PyTorch's warnings at the doors of TorchScript."""
from __future__ import annotations

import sys
import warnings


def deprecated(name: str, instead: str = "`torch.compile` or `torch.export`") -> None:
    """Warns that `torch.jit.name` goes away."""
    what = "is not supported in Python 3.14+ and may break" if sys.version_info >= (3, 14) else "is deprecated"
    warnings.warn(f"`torch.jit.{name}` {what}. Please switch to {instead}.", DeprecationWarning)  # noqa: B028  (as PyTorch's, it names the library's line)
