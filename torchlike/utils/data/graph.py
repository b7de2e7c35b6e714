"""Of which pipes a pipe is made."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse_dps"]

DataPipe = IterDataPipe | MapDataPipe


def _held(x: Any, depth: int = 0) -> list[DataPipe]:
    """The pipes in a pipe's state, however deep in collections."""
    if isinstance(x, DataPipe):
        return [x]
    if isinstance(x, Mapping):
        x = list(x.values())
    if not isinstance(x, Collection) or isinstance(x, (str, bytes, bytearray, range)) or not isinstance(x, (list, tuple, set, frozenset)) or depth > 50:
        return []
    return [pipe for inner in x for pipe in _held(inner, depth + 1)]


def traverse_dps(datapipe: DataPipe) -> dict[int, tuple[DataPipe, dict]]:
    """{id of the pipe: (pipe, the same of those it is made of)}; a pipe that is reached again on one way is left out there."""
    return _below(datapipe, frozenset())


def _below(datapipe: DataPipe, above: frozenset) -> dict:
    if not isinstance(datapipe, DataPipe):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(datapipe)} is found")
    if id(datapipe) in above:
        return {}
    inner: dict = {}
    for pipe in _held(datapipe.__getstate__()):
        inner.update(_below(pipe, above | {id(datapipe)}))
    return {id(datapipe): (datapipe, inner)}
