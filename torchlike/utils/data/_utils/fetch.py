"""How one index, or one list of indices, becomes data."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

__all__ = ["IterableFetcher", "MapFetcher", "_DatasetKind"]


class MapFetcher:
    """Data of a map-style dataset."""

    def __init__(self, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn = dataset, auto_collation, collate_fn

    def fetch(self, index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        at_once = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(at_once(index) if at_once else [self.dataset[i] for i in index])


class IterableFetcher:
    """Data of an iterable dataset: an index only says how many samples are wanted."""

    def __init__(self, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.samples = iter(dataset)
        self.auto_collation, self.collate_fn, self.drop_last = auto_collation, collate_fn, drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(next(self.samples))
        if self.ended:
            raise StopIteration
        batch = list(itertools.islice(self.samples, len(index)))
        self.ended = len(batch) < len(index)
        if not batch or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(batch)


class _DatasetKind:
    """The two kinds of data sets, by PyTorch's numbers."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool):
        fetcher = MapFetcher if kind == _DatasetKind.Map else IterableFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)
