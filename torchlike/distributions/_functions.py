"""torch's public functions by their names: what a distribution calls is seen by modes, by classes that take functions over, and by torch.export."""
from __future__ import annotations

import sys
from collections.abc import Callable

_TORCH = __package__.rpartition(".")[0]


class _Public:
    """Looked up at each call: the package is still being loaded when distributions are."""

    def __getitem__(self, name: str) -> Callable:
        return getattr(sys.modules[_TORCH], name)


F = _Public()
