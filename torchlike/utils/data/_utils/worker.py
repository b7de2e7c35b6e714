"""What runs in a worker process."""
from __future__ import annotations

import gc
import os
import pickle
import queue
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from torchlike._core import program
from torchlike._utils import ExceptionWrapper
from torchlike.ops.random import manual_seed

from .. import _pipes
from . import transport
from .fetch import IterableFetcher

__all__ = ["ExceptionWrapper", "Finished", "Job", "Resumed", "WorkerInfo", "get_worker_info", "worker_main"]

WATCH_INTERVAL = 2.0  # seconds between looks whether the parent process still lives

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


class Finished(NamedTuple):
    """A worker's iterable dataset has no more samples."""


class Resumed(NamedTuple):
    """Parent to worker: begin anew; worker to parent: all that comes after belongs to the new epoch."""

    shared_seed: int | None = None  # of data pipes: the same in all workers


class Job(NamedTuple):
    """Everything a worker process is started with."""

    connection: Connection
    forked: bool
    inherited: list  # ends of pipes that a fork copied into the worker and that it must not keep open
    make_fetcher: Callable
    dataset: Any
    base_seed: int
    worker_id: int
    num_workers: int
    init_fn: Callable | None
    shared_seed: int | None = None


def worker_main(job: Job) -> None:
    """Answer requests until the parent closes the connection or dies."""
    program.numpy_only()
    parents = program.trie.root  # noqa: F841  held, since its executables must not be ended here
    program.forget_programs()  # a program that the parent compiled would be run by XLA, whose threads are not here: forever
    if job.forked:
        gc.freeze()  # no collection here frees what the parent made: JAX arrays among it, and pages they share
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the parent's own handler means the parent
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
    parent, parent_id = parent_process(), os.getppid()

    def orphan() -> bool:
        return os.getppid() != parent_id or not parent.is_alive()

    try:
        while True:
            if connection.poll(WATCH_INTERVAL):
                requests.put(connection.recv_bytes())
            elif orphan():
                os._exit(1)
    except (EOFError, OSError):  # the parent closed the connection
        requests.put(None)
    while not orphan():
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
        _set_pipes(job, job.shared_seed)
        if job.init_fn is not None:
            job.init_fn(job.worker_id)
        fetcher = job.make_fetcher(job.dataset)
    except Exception:
        failure = ExceptionWrapper(where=where)
    while (encoded := requests.get()) is not None:
        number, index = pickle.loads(encoded)
        if isinstance(index, Resumed):
            finished, failure = False, None
            try:
                _set_pipes(job, index.shared_seed, False)
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
                if isinstance(error, StopIteration) and isinstance(fetcher, IterableFetcher):
                    finished, data = True, Finished()
                else:
                    data = ExceptionWrapper(where=where)
        _send(job.connection, number, data, where)
        del data


def _set_pipes(job: Job, seed: int | None, first: bool = True) -> None:
    """Data pipes: one order in all workers, of which each takes its part."""
    if seed is not None:
        _pipes.seed(job.dataset, seed)
    if first and _pipes.any_kind(job.dataset):
        _pipes.settings().apply_sharding(job.dataset, job.num_workers, job.worker_id)


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
