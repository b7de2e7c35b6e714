"""torch's public functions by their names, for modules that are Python in PyTorch as well: what these call is seen by modes, by classes that take functions
over, and by torch.export. (A function of `ops` is an inner one: nobody is told of its calls.)"""
from __future__ import annotations

import sys
from typing import Any


class _Public:
    """Looked up at each call: the package is still being loaded when these modules are."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules[__package__], name)

    __getitem__ = __getattr__


torch = _Public()
