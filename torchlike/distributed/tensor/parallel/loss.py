"""loss_parallel: cross-entropy where the ranks have different classes."""
import contextlib
from collections.abc import Iterator

from .._losses import class_parallel

__all__ = ["loss_parallel"]


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Inside, cross_entropy of a DTensor that is cut along its classes gathers no logits; its backward has to be inside too, in torch."""
    token = class_parallel.set(True)
    try:
        yield
    finally:
        class_parallel.reset(token)
