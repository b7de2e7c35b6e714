"""What runs in a worker process."""
from __future__ import annotations

import os
import pickle
import queue
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from torchlike._utils import ExceptionWrapper
from torchlike.ops.random import manual_seed

from .. import _pipes
from . import MP_STATUS_CHECK_INTERVAL, signal_handling, transport

__all__ = ["ExceptionWrapper", "Job", "ManagerWatchdog", "WorkerInfo", "get_worker_info", "worker_main"]

WATCH_INTERVAL = min(2.0, MP_STATUS_CHECK_INTERVAL)  # seconds between looks whether the parent process still lives

_worker_info: WorkerInfo | None = None


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Which worker this process is: its `id` of `num_workers`, its `seed`, and its copy of the `dataset`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo inside a worker process, None elsewhere."""
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's iterable dataset has no more samples."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Parent to worker: begin anew; worker to parent: all that comes after belongs to the new epoch."""

    seed: int | None = None  # of data pipes: the same in all workers


class ManagerWatchdog:
    """Whether the process that started this one still lives."""

    def __init__(self) -> None:
        self.manager_pid, self.manager_dead = os.getppid(), False
        self._parent = parent_process()

    def is_alive(self) -> bool:
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid or not (self._parent is None or self._parent.is_alive())
        return not self.manager_dead


class Job(NamedTuple):
    """Everything a worker process is started with."""

    connection: Connection
    inherited: list  # ends of pipes that a fork copied into the worker and that it must not keep open
    make_fetcher: Callable
    dataset: Any
    iterable: bool
    base_seed: int
    worker_id: int
    num_workers: int
    init_fn: Callable | None
    shared_seed: int | None = None


def worker_main(job: Job) -> None:
    """Answer requests until the parent closes the connection or dies."""
    signal_handling._set_worker_signal_handlers()
    for connection in job.inherited:
        connection.close()
    requests: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(job.connection, requests), daemon=True).start()
    try:
        _answer(job, requests)
    except (BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        pass  # the parent left, or Ctrl-C, which the parent got as well
    sys.stdout.flush()
    sys.stderr.flush()


def _listen(connection: Connection, requests: queue.SimpleQueue) -> None:
    """Reads at all times, so that the parent can always write; ends the process once the parent is gone."""
    watchdog = ManagerWatchdog()
    try:
        while True:
            if connection.poll(WATCH_INTERVAL):
                requests.put(connection.recv_bytes())
            elif not watchdog.is_alive():
                os._exit(1)
    except (EOFError, OSError):  # the parent closed the connection
        requests.put(None)
    while watchdog.is_alive():
        time.sleep(WATCH_INTERVAL)
    os._exit(1)


def _answer(job: Job, requests: queue.SimpleQueue) -> None:
    global _worker_info
    where = f"in DataLoader worker process {job.worker_id}"
    _seed(job.base_seed, job.worker_id)
    _worker_info = WorkerInfo(job.worker_id, job.num_workers, job.base_seed + job.worker_id, job.dataset)
    fetcher = failure = None
    finished = False
    try:
        _seed_pipes(job, job.shared_seed)
        if job.init_fn is not None:
            job.init_fn(job.worker_id)
        fetcher = job.make_fetcher(job.dataset)
    except Exception:
        failure = ExceptionWrapper(where=where)
    while (encoded := requests.get()) is not None:
        number, index = pickle.loads(encoded)
        if isinstance(index, _ResumeIteration):
            finished, failure = False, None
            try:
                _seed_pipes(job, index.seed)
                fetcher = job.make_fetcher(job.dataset)
            except Exception:
                failure = ExceptionWrapper(where=where)
            data: Any = index
        elif finished:
            continue  # the parent does not wait for these
        elif failure is not None:
            data = failure
        else:
            try:
                data = fetcher.fetch(index)
            except Exception as error:
                if isinstance(error, StopIteration) and job.iterable:
                    finished, data = True, _IterableDatasetStopIteration(job.worker_id)
                else:
                    data = ExceptionWrapper(where=where)
        _send(job.connection, number, data, where)
        del data


def _seed_pipes(job: Job, seed: int | None) -> None:
    """Data pipes: one order in all workers."""
    if seed is not None:
        _pipes.seed(job.dataset, seed)


def _send(connection: Connection, number: int, data: Any, where: str) -> None:
    try:
        transport.send(connection, (number, data))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception:  # it cannot be pickled: the data, or the class of the exception
        failure = data if isinstance(data, ExceptionWrapper) else ExceptionWrapper(where=where)
        failure.exc_type = RuntimeError if failure is data else failure.exc_type
        transport.send(connection, (number, failure))


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The words that seed NumPy's generator in a worker."""
    return np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4).tolist()


def _seed(base_seed: int, worker_id: int) -> None:
    """Generators of random, torch and NumPy, each with PyTorch's own seed for this worker."""
    random.seed(base_seed + worker_id)
    manual_seed(base_seed + worker_id)
    np.random.seed(_generate_state(base_seed, worker_id))
