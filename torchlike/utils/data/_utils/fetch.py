"""How one index, or one list of indices, becomes data."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlike._host import glance
from torchlike._tensor import Tensor, as_tensor_value

from ..dataset import Subset, TensorDataset
from .collate import default_collate

__all__ = ["_BaseDatasetFetcher", "_DatasetKind", "_IterableDatasetFetcher", "_MapDatasetFetcher"]


class _BaseDatasetFetcher:
    """What fetches from a dataset, by PyTorch's names: libraries put their own in its place, or look at its state."""

    def __init__(self, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = dataset, auto_collation, collate_fn, drop_last

    def fetch(self, index: Any) -> Any:
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Data of a map-style dataset."""

    def fetch(self, index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if self.collate_fn is default_collate:
            rows = _rows(self.dataset, index)
            if rows is not None:
                return rows
        at_once = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(at_once(index) if at_once else [self.dataset[i] for i in index])


def _rows(dataset, index: Any) -> list | None:
    """A batch of a TensorDataset, or of Subsets of one, by one look-up in each tensor instead of one for each sample.

    None when it must be done sample by sample: other classes, indices that are not plain or out of range, gradients.
    """
    while type(dataset) is Subset and type(dataset.indices) in (list, range):
        if not _plain_indices(index, len(dataset.indices)):
            return None
        index = [dataset.indices[i] for i in index]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or not dataset.tensors or not _plain_indices(index, len(dataset)):
        return None
    if any(type(t) is not Tensor or t.requires_grad or t.device.type != "cpu" for t in dataset.tensors):
        return None
    return [as_tensor_value(glance(t)[index]) for t in dataset.tensors]


def _plain_indices(index: Any, length: int) -> bool:
    return type(index) is list and bool(index) and all(type(i) is int and 0 <= i < length for i in index)


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Data of an iterable dataset: an index only says how many samples are wanted."""

    def __init__(self, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        batch = []
        for _ in index:  # not by itertools: it would ask a dataset that is its own iterator for a new one
            try:
                batch.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(batch)


class _DatasetKind:
    """The two kinds of data sets, by PyTorch's numbers."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset, auto_collation: bool, collate_fn: Callable, drop_last: bool) -> _BaseDatasetFetcher:
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)
