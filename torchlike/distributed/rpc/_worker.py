"""Who takes part: a worker's name and number."""

from __future__ import annotations

import re

_LONGEST = 128


class WorkerInfo:
    """A worker of the RPC group: its name, and its number (`id`), which is its rank."""

    __slots__ = ("id", "name")

    def __init__(self, name: str, id: int) -> None:
        if not name or len(name) > _LONGEST or not re.fullmatch("[A-Za-z0-9_:-]*", name):
            raise RuntimeError(f"Worker name must match ^[A-Za-z0-9-_:]*$, and must be non-empty and shorter than {_LONGEST} chars, but got {name}")
        self.name, self.id = name, int(id)

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerInfo) and (self.id, self.name) == (other.id, other.name)

    def __hash__(self) -> int:
        return hash((self.id, self.name))

    def __reduce__(self) -> tuple:
        return WorkerInfo, (self.name, self.id)
