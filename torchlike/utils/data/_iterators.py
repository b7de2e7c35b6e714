"""The iterators of a DataLoader: one in this process, one over worker processes."""
from __future__ import annotations

import functools
import itertools
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from torchlike import multiprocessing
from torchlike._core.device import cuda_available, tpu_available
from torchlike._core.dtype import int64
from torchlike._functions import torch

from . import _pipes
from ._utils.apart import Fetches
from ._utils.fetch import _DatasetKind
from ._utils.worker import ExceptionWrapper, Finished, Resumed
from ._utils.workers import Workers

__all__ = ["_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"]


def _fetcher_of(loader) -> Callable:
    """What makes a fetcher from the dataset, in this process or in a worker. The loader may be a program's own (fastai's): it is asked by
    torch's names."""
    return functools.partial(_DatasetKind.create_fetcher, loader._dataset_kind, auto_collation=loader._auto_collation, collate_fn=loader.collate_fn,
                             drop_last=loader.drop_last)


class _BaseDataLoaderIter:
    """What both iterators do: draw a base seed, follow the sampler, count, and compare with the length told."""

    def __init__(self, loader) -> None:
        if loader.pin_memory:
            _warn_of_pinning(loader.pin_memory_device)
        self._begin(loader)
        # drawn at each new iterator, whether or not there are workers: seeds of later draws depend on it
        self._base_seed = torch.empty((), dtype=int64).random_(generator=loader.generator).item()

    def _begin(self, loader) -> None:
        # the loader itself is not kept: with persistent workers it keeps this iterator
        self._dataset = loader.dataset
        self._index_sampler = loader._index_sampler
        self._indices = iter(self._index_sampler)
        self._in_workers = loader.num_workers > 0
        self._length_told = loader._IterableDataset_len_called
        self._yielded = 0
        self._seed_pipes(loader)

    def _seed_pipes(self, loader) -> None:
        """Draw the seed from which all data pipes get theirs, in every worker the same."""
        self._shared_seed = None
        if _pipes.iterated(self._dataset):
            self._shared_seed = torch.empty((), dtype=int64).random_(generator=loader.generator).item()
            _pipes.seed(self._dataset, self._shared_seed)

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        data = self._next_data()
        self._yielded += 1
        if self._length_told is not None and self._yielded > self._length_told:
            self._warn_of_length()
        return data

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _warn_of_length(self) -> None:
        text = (f"Length of IterableDataset {self._dataset} was reported to be {self._length_told}"
                f"(when accessing len(dataloader)), but {self._yielded} samples have been fetched. ")
        if self._in_workers:
            text += ("For multiprocessing data-loading, this could be caused by not properly configuring the "
                     "IterableDataset replica at each worker. Please see "
                     "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples.")
        warnings.warn(text, stacklevel=3)


def _warn_of_pinning(device: str) -> None:
    """Arrays go to an accelerator by XLA's own path, so there is nothing to pin; the warnings are PyTorch's."""
    if device:
        warnings.warn("pin_memory_device is deprecated, the current accelerator will be used as the device,"
                      f"ignore pin_memory_device='{device}'.", stacklevel=5)
    if not (cuda_available() or tpu_available()):
        warnings.warn("'pin_memory' argument is set as true but no accelerator is found, "
                      "then device pinned memory won't be used.", stacklevel=5)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Makes each batch when it is asked for."""

    def __init__(self, loader) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if _pipes.any_kind(self._dataset):
            _pipes.settings().apply_sharding(self._dataset, 1, 0)
        self._fetcher = _fetcher_of(loader)(loader.dataset)
        self._fetch = Fetches(self._fetcher.fetch)

    def _next_data(self) -> Any:
        return self._fetch(next(self._indices))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Deals requests out to workers in turn, `prefetch_factor` for each, and yields their answers.

    Answers come in the order of the requests, or as they arrive with `in_order=False`.
    """

    def __init__(self, loader) -> None:
        if not loader.prefetch_factor > 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        super().__init__(loader)
        self._count, self._prefetch = loader.num_workers, loader.prefetch_factor
        self._in_order, self._timeout, self._persistent = loader.in_order, loader.timeout, loader.persistent_workers
        self._workers = Workers(loader.multiprocessing_context or multiprocessing, self._count, {
            "make_fetcher": _fetcher_of(loader), "dataset": loader.dataset,
            "base_seed": self._base_seed, "init_fn": loader.worker_init_fn, "shared_seed": self._shared_seed,
        })
        self._seed_pipes(loader)  # a second time, as PyTorch does: later draws depend on it
        # also called when the interpreter exits
        self._finalizer = weakref.finalize(self, self._workers.close)
        self._deal()

    def _shutdown_workers(self) -> None:
        """End the workers now. Libraries call this."""
        self._finalizer()

    def restart(self, loader) -> None:
        """Begin a new epoch with the same workers; what they still had to do for the last one is dropped."""
        self._begin(loader)
        for worker in range(self._count):
            self._workers.send(worker, (None, Resumed(self._shared_seed)))
        waiting = set(range(self._count))
        while waiting:
            for worker, (_, data) in self._workers.receive(self._timeout):
                if isinstance(data, Resumed):
                    waiting.discard(worker)
        self._deal()

    def _deal(self) -> None:
        self._asked = 0  # number of the next request
        self._worker_of: dict[int, int] = {}  # requests not yet answered to the user, in order
        self._arrived: dict[int, Any] = {}
        self._busy = [0] * self._count  # requests at each worker
        self._active = [True] * self._count
        self._turns = itertools.cycle(range(self._count))
        for _ in range(self._prefetch * self._count):
            self._ask()

    def _ask(self) -> None:
        """Send the sampler's next index to the next worker that can take it."""
        worker = next((w for w in itertools.islice(self._turns, self._count) if self._can_take(w)), None)
        if worker is None:
            return
        index = next(self._indices, self)
        if index is self:
            return
        number = self._asked
        self._asked += 1
        self._worker_of[number] = worker
        self._busy[worker] += 1
        self._workers.send(worker, (number, index))

    def _can_take(self, worker: int) -> bool:
        # in order, the turns alone keep the workers even
        return self._active[worker] and (self._in_order or self._busy[worker] < self._prefetch)

    def _next_data(self) -> Any:
        while self._worker_of:
            number = self._next_number()
            worker = self._worker_of.pop(number)
            data = self._arrived.pop(number)
            self._busy[worker] -= 1
            if isinstance(data, Finished):
                self._drop_worker(worker)
                continue
            self._ask()
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            return data
        if not self._persistent:
            self._finalizer()
        raise StopIteration

    def _next_number(self) -> int:
        """The request whose answer is due, once its answer is there."""
        while True:
            if self._in_order:
                number = next(iter(self._worker_of))
                if number in self._arrived:
                    return number
            elif self._arrived:
                return next(iter(self._arrived))
            for _, (number, data) in self._workers.receive(self._timeout):
                self._arrived[number] = data

    def _drop_worker(self, worker: int) -> None:
        """A worker's dataset ended: what else it was asked for will not come."""
        self._active[worker] = False
        for number in [n for n, w in self._worker_of.items() if w == worker]:
            del self._worker_of[number]
        self._ask()
