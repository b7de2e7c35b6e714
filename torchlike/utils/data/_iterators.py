"""The iterators of a DataLoader: one in this process, one over worker processes.

Libraries derive theirs from these, exchange their methods, and read and write what they hold, by PyTorch's names (torchdata's StatefulDataLoader, speechbrain).
"""
from __future__ import annotations

import functools
import itertools
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from torchlike import accelerator, multiprocessing
from torchlike._core.dtype import int64
from torchlike._functions import torch

from . import _pipes
from ._utils.apart import Fetches, done_at_once
from ._utils.fetch import _DatasetKind
from ._utils.pin_memory import pin_memory
from ._utils.worker import ExceptionWrapper, _IterableDatasetStopIteration, _ResumeIteration, get_worker_info
from ._utils.workers import Workers

__all__ = ["_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter", "_get_distributed_settings", "_share_dist_seed",
           "_sharding_worker_init_fn"]


def _joined() -> Any:
    """torch.distributed where this process is in a group, else None."""
    dist = sys.modules.get("torchlike.distributed")
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None


def _get_distributed_settings() -> tuple[int, int]:
    """How many processes there are and which this is."""
    dist = _joined()
    return (dist.get_world_size(), dist.get_rank()) if dist else (1, 0)


def _share_dist_seed(generator, pg) -> int:
    """A drawn number, the same in all processes of a group."""
    seed = torch.empty((), dtype=int64).random_(generator=generator)
    if pg is not None:
        _joined().broadcast(seed, src=0, group=pg)
    return seed.item()


def _sharding_worker_init_fn(worker_init_fn: Callable | None, world_size: int, rank_id: int, worker_id: int) -> None:
    """In a worker whose dataset is a data pipe: take one part of as many as there are workers of all processes, then call the program's own function."""
    info = get_worker_info()
    if info is None:
        raise AssertionError("Worker info is None in sharding worker init function")
    if not _pipes.any_kind(info.dataset):
        raise AssertionError("datapipe must be an instance of IterDataPipe or MapDataPipe")
    _pipes.settings().apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


class _BaseDataLoaderIter:
    """What both iterators do: draw a base seed, follow the sampler, count, and compare with the length told."""

    def __init__(self, loader) -> None:
        # the loader itself is not kept: with persistent workers it keeps this iterator
        self._dataset, self._dataset_kind = loader.dataset, loader._dataset_kind
        self._auto_collation, self._collate_fn, self._drop_last = loader._auto_collation, loader.collate_fn, loader.drop_last
        self._num_workers, self._timeout, self._persistent_workers = loader.num_workers, loader.timeout, loader.persistent_workers
        self._world_size, self._rank = _get_distributed_settings()
        self._pin_memory, self._pin_memory_device = _pinning(loader)
        self._shared_seed = self._pg = None
        if _joined() and _pipes.iterated(self._dataset):
            self._pg = _joined().new_group(backend="gloo")
        self._seed_pipes(loader)
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._index_sampler = loader._index_sampler
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        # drawn at each new iterator, whether or not there are workers: seeds of later draws depend on it
        with done_at_once():
            self._base_seed = torch.empty((), dtype=int64).random_(generator=loader.generator).item()

    def _reset(self, loader, first_iter: bool = False) -> None:
        """Begin a new epoch."""
        self._sampler_iter, self._num_yielded = iter(self._index_sampler), 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._seed_pipes(loader)

    def _seed_pipes(self, loader) -> None:
        """Draw the seed from which all data pipes get theirs, in every worker the same."""
        if _pipes.iterated(self._dataset):
            self._shared_seed = _share_dist_seed(loader.generator, self._pg)
            _pipes.seed(self._dataset, self._shared_seed)

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        if self._dataset_kind == _DatasetKind.Iterable and self._IterableDataset_len_called is not None and self._num_yielded > self._IterableDataset_len_called:
            self._warn_of_length()
        return data

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)

    def _next_index(self) -> Any:
        """What the sampler says is next; StopIteration at its end."""
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def _warn_of_length(self) -> None:
        text = (f"Length of IterableDataset {self._dataset} was reported to be {self._IterableDataset_len_called}"
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. ")
        if self._num_workers > 0:
            text += ("For multiprocessing data-loading, this could be caused by not properly configuring the "
                     "IterableDataset replica at each worker. Please see "
                     "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples.")
        warnings.warn(text, stacklevel=3)


def _pinning(loader) -> tuple[bool, str | None]:
    """Whether batches are handed to their `pin_memory`, and for which device; the warnings are PyTorch's. Tensors themselves go to an accelerator by XLA's
    own path, so there is nothing to pin of them."""
    if not loader.pin_memory:
        return False, None
    if loader.pin_memory_device:
        warnings.warn("pin_memory_device is deprecated, the current accelerator will be used as the device,"
                      f"ignore pin_memory_device='{loader.pin_memory_device}'.", stacklevel=5)
    device = accelerator.current_accelerator()
    if device is None:
        warnings.warn("'pin_memory' argument is set as true but no accelerator is found, "
                      "then device pinned memory won't be used.", stacklevel=5)
    return device is not None, device and device.type


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Makes each batch when it is asked for."""

    def __init__(self, loader) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        if _pipes.any_kind(self._dataset):
            _pipes.settings().apply_sharding(self._dataset, self._world_size, self._rank)
        self._dataset_fetcher = _DatasetKind.create_fetcher(self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last)
        self._fetches = Fetches()

    def _next_data(self) -> Any:
        data = self._fetches(self._dataset_fetcher.fetch, self._next_index())
        return pin_memory(data, self._pin_memory_device) if self._pin_memory else data


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Deals requests out to workers in turn, `prefetch_factor` for each, and yields their answers.

    Answers come in the order of the requests, or as they arrive with `in_order=False`.
    """

    def __init__(self, loader) -> None:
        if not loader.prefetch_factor > 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        super().__init__(loader)
        self._prefetch_factor, self._in_order = loader.prefetch_factor, loader.in_order
        self._worker_init_fn = loader.worker_init_fn
        if _pipes.any_kind(self._dataset):
            self._worker_init_fn = functools.partial(_sharding_worker_init_fn, self._worker_init_fn, self._world_size, self._rank)
        make = functools.partial(_DatasetKind.create_fetcher, self._dataset_kind, auto_collation=self._auto_collation, collate_fn=self._collate_fn,
                                 drop_last=self._drop_last)
        self._workers = Workers(loader.multiprocessing_context or multiprocessing, self._num_workers, {
            "make_fetcher": make, "dataset": self._dataset, "iterable": self._dataset_kind == _DatasetKind.Iterable,
            "base_seed": self._base_seed, "init_fn": self._worker_init_fn, "shared_seed": self._shared_seed,
        })
        # also called when the interpreter exits
        self._finalizer = weakref.finalize(self, self._workers.close)
        self._reset(loader, first_iter=True)

    def _shutdown_workers(self) -> None:
        """End the workers now. Libraries call this."""
        self._finalizer()

    def _reset(self, loader, first_iter: bool = False) -> None:
        """Begin an epoch with these workers; what they still had to do for the last one is dropped."""
        super()._reset(loader, first_iter)  # draws a seed for pipes in the first epoch too, as PyTorch does: later draws depend on it
        if not first_iter:
            for worker in range(self._num_workers):
                self._workers.send(worker, (None, _ResumeIteration(self._shared_seed)))
            waiting = set(range(self._num_workers))
            while waiting:
                for worker, (_, data) in self._workers.receive(self._timeout):
                    if isinstance(data, _ResumeIteration):
                        waiting.discard(worker)
        self._asked = 0  # number of the next request
        self._worker_of: dict[int, int] = {}  # requests not yet answered to the user, in order
        self._arrived: dict[int, Any] = {}
        self._busy = [0] * self._num_workers  # requests at each worker
        self._workers_status = [True] * self._num_workers  # which have samples left
        self._turns = itertools.cycle(range(self._num_workers))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._ask()

    def _ask(self) -> None:
        """Send the sampler's next index to the next worker that can take it."""
        worker = next((w for w in itertools.islice(self._turns, self._num_workers) if self._can_take(w)), None)
        if worker is None:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        number = self._asked
        self._asked += 1
        self._worker_of[number] = worker
        self._busy[worker] += 1
        self._workers.send(worker, (number, index))

    def _can_take(self, worker: int) -> bool:
        # in order, the turns alone keep the workers even
        return self._workers_status[worker] and (self._in_order or self._busy[worker] < self._prefetch_factor)

    def _next_data(self) -> Any:
        while self._worker_of:
            number = self._next_number()
            worker = self._worker_of.pop(number)
            data = self._arrived.pop(number)
            self._busy[worker] -= 1
            if isinstance(data, _IterableDatasetStopIteration):
                self._drop_worker(worker)
                continue
            self._ask()
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            return pin_memory(data, self._pin_memory_device) if self._pin_memory else data
        if not self._persistent_workers:
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
        self._workers_status[worker] = False
        for number in [n for n, w in self._worker_of.items() if w == worker]:
            del self._worker_of[number]
        self._ask()
