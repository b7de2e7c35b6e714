"""The data pipes of look-ups."""
from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any

from torchlike._core.dtype import int64
from torchlike._functions import torch

from .._common import Shuffles, check_picklable, length_of
from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe, MapDataPipe

__all__ = ["BatcherMapDataPipe", "ConcaterMapDataPipe", "MapperMapDataPipe", "SequenceWrapperMapDataPipe", "ShufflerIterDataPipe", "ZipperMapDataPipe"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The samples of a sequence or mapping, of a deep copy unless `deepcopy=False`."""

    def __init__(self, sequence: Sequence | Mapping, deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn("The input sequence can not be deepcopied, please be aware of in-place modification would affect source data", stacklevel=2)

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


def default_fn(data: Any) -> Any:
    """The sample itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """fn of each sample."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable = default_fn) -> None:
        check_picklable(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


class ShufflerIterDataPipe(Shuffles, IterDataPipe):
    """The samples in random order, each once."""

    def __init__(self, datapipe: MapDataPipe, *, indices: list | None = None) -> None:
        self.datapipe, self.indices = datapipe, list(range(len(datapipe))) if indices is None else indices
        self._enabled, self._seed, self._rng, self._shuffled_indices = True, None, random.Random(), self.indices

    def __iter__(self) -> Iterator:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
        else:
            while self._shuffled_indices:
                yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self) -> None:
        if self._enabled and self._seed is None:
            self._seed = torch.empty((), dtype=int64).random_().item()
        self._rng.seed(self._seed)
        self._seed = None
        self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getstate__(self) -> Any:
        return self._hooked({**self.__dict__, "_rng": self._rng.getstate()})

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._rng = random.Random()
        self._rng.setstate(state["_rng"])


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)


def _checked(datapipes: tuple) -> tuple:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(p, MapDataPipe) for p in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(isinstance(p, Sized) for p in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")
    return datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """Pipes one after another."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: int) -> Any:
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of a sample of each."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: Any) -> tuple:
        made = []
        for pipe in self.datapipes:
            try:
                made.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from error
        return tuple(made)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Lists of `batch_size` samples."""

    def __init__(self, datapipe: MapDataPipe, batch_size: int, drop_last: bool = False, wrapper_class: type[DataChunk] = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __getitem__(self, index: int) -> DataChunk:
        batch: list = []
        try:
            for i in range(index * self.batch_size, (index + 1) * self.batch_size):
                batch.append(self.datapipe[i])
        except IndexError as error:
            if self.drop_last or not batch:
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)

    def __len__(self) -> int:
        n = length_of(self, self.datapipe)[0]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
