"""What PyTorch calls experimental about DTensors."""
import contextlib
from collections.abc import Iterator

from ._dispatch import replicating
from ._local_map import local_map
from ._registered import register_sharding

__all__ = ["implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Inside, a plain tensor among DTensors counts as one that every rank has."""
    token = replicating.set(True)
    try:
        yield
    finally:
        replicating.reset(token)
