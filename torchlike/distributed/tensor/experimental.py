"""What PyTorch calls experimental about DTensors."""
import contextlib
from collections.abc import Iterator

from ._dispatch import replicating


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside, a plain tensor among DTensors counts as one that every rank has."""
    token = replicating.set(True)
    try:
        yield
    finally:
        replicating.reset(token)
