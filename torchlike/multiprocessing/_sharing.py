"""Names of PyTorch's strategies for sharing memory. Tensors travel by value, shared ones by a descriptor (_shared.py): there is nothing to choose."""
from __future__ import annotations

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]

_STRATEGIES = {"file_descriptor", "file_system"}
_chosen = ["file_descriptor"]


def set_sharing_strategy(new_strategy: str) -> None:
    """Remember a strategy's name; tensors are sent alike whichever it is."""
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _chosen[0] = new_strategy


def get_sharing_strategy() -> str:
    """The name last set."""
    return _chosen[0]


def get_all_sharing_strategies() -> set[str]:
    """All names."""
    return set(_STRATEGIES)
