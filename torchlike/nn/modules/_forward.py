"""Classes of layers that share one forward here, and have one each in PyTorch: Python's errors about a call tell its class."""
from __future__ import annotations

from ..._exchange import copied


def own_forward(*classes: type) -> None:
    """Give each of the classes a forward of its own, which does what the one that it inherits does."""
    for cls in classes:
        cls.forward = copied(cls.forward)  # type: ignore[attr-defined]
        cls.forward.__qualname__ = f"{cls.__name__}.forward"  # type: ignore[attr-defined]
