"""Batches and groups."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from .._common import check_picklable, length_of
from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Lists of `batch_size` samples."""

    def __init__(self, datapipe: IterDataPipe, batch_size: int, drop_last: bool = False, wrapper_class: type[DataChunk] = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __iter__(self) -> Iterator[DataChunk]:
        batch: list = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        n = length_of(self, self.datapipe)[0]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples in lists, `unbatch_level` deep; -1: however deep they are."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator:
        for sample in self.datapipe:
            yield from self._opened(sample, self.unbatch_level)

    def _opened(self, sample: Any, level: int) -> Iterator:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(sample, list)):
            yield sample
        elif isinstance(sample, list):
            for inner in sample:
                yield from self._opened(inner, max(level - 1, -1))
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of samples with one key. A group goes out when it has `group_size` samples, when the buffer is full and it is the largest, or at the end."""

    def __init__(self, datapipe: IterDataPipe, group_key_fn: Callable[[Any], Hashable], *, keep_key: bool = False, buffer_size: int = 10000,
                 group_size: int | None = None, guaranteed_group_size: int | None = None, drop_remaining: bool = False) -> None:
        check_picklable(group_key_fn)
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and (group_size is None or not 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.datapipe, self.group_key_fn, self.keep_key, self.max_buffer_size, self.group_size = datapipe, group_key_fn, keep_key, buffer_size, group_size
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.drop_remaining, self.wrapper_class = drop_remaining, DataChunk
        self.reset()

    def reset(self) -> None:
        self.buffer_elements: defaultdict[Hashable, list] = defaultdict(list)
        self.curr_buffer_size = 0

    def _group(self, key: Hashable, samples: list) -> Any:
        group = self.wrapper_class(samples)
        return (key, group) if self.keep_key else group

    def _taken(self, key: Hashable) -> list:
        samples = self.buffer_elements.pop(key)
        self.curr_buffer_size -= len(samples)
        return samples

    def __iter__(self) -> Iterator:
        groups = self.buffer_elements
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            groups[key].append(sample)
            self.curr_buffer_size += 1
            if self.group_size == len(groups[key]):
                yield self._group(key, self._taken(key))
            if self.curr_buffer_size == self.max_buffer_size:
                largest = max(groups, key=lambda k: len(groups[k]))
                enough = self.guaranteed_group_size is None or len(groups[largest]) >= self.guaranteed_group_size
                if not enough and not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(groups[largest]))
                samples = self._taken(largest)
                if enough:
                    yield self._group(key, samples)  # with the key of the last sample, as in PyTorch
        for key in list(groups):
            yield self._group(key, self._taken(key))

    def __getstate__(self) -> Any:
        return self._hooked({name: x for name, x in self.__dict__.items() if name not in ("buffer_elements", "curr_buffer_size")})

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.reset()
