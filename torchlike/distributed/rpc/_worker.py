"""Who takes part: a worker's name and number."""

from __future__ import annotations

import numbers
import re

_LIMIT = 128


class WorkerInfo:
    """A worker of the RPC group: its name, and its number (`id`), which is its rank."""

    __slots__ = ("id", "name")

    def __init__(self, name: str, id: int) -> None:
        if not isinstance(name, str) or not isinstance(id, numbers.Integral):
            raise TypeError(f"__init__(): incompatible constructor arguments: name={name!r}, id={id!r}")
        if len(name) >= _LIMIT or not re.fullmatch("[A-Za-z0-9_:-]+", name):
            raise RuntimeError(f"Worker name must match ^[A-Za-z0-9-_:]*$, and must be non-empty and shorter than {_LIMIT} chars, but got {name}")
        self.name, self.id = name, int(id)

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerInfo) and (self.id, self.name) == (other.id, other.name)

    def __hash__(self) -> int:
        return hash((self.id, self.name))

    def __reduce__(self) -> tuple:
        return WorkerInfo, (self.name, self.id)
