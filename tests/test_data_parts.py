"""What loaders of libraries take from torch.utils.data's private parts (torchdata's StatefulDataLoader, speechbrain, axolotl), as in real torch."""
import itertools
import multiprocessing.connection
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import warnings

import pytest
import torch as real
from test_data import Numbers, plain, stream

import torchlike as ours
from torchlike._core import program

BOTH = pytest.mark.parametrize("torch", [real, ours], ids=["torch", "torchlike"])


def outcome(call):
    try:
        return call()
    except Exception as e:
        return type(e).__name__, str(e)


def same(case):
    want, got = plain(case(real)), plain(case(ours))
    assert got == want, f"\n torch     {want}\n torchlike {got}"


HELD = ("_auto_collation", "_drop_last", "_num_workers", "_timeout", "_persistent_workers", "_world_size", "_rank", "_pin_memory", "_pin_memory_device",
        "_shared_seed", "_IterableDataset_len_called", "_num_yielded", "_dataset_kind", "_base_seed")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["map", "iterable"])
def test_what_an_iterator_holds(kind, workers):
    def case(torch):
        torch.manual_seed(3)
        data = Numbers(7) if kind == "map" else stream(torch, 7)
        loader = torch.utils.data.DataLoader(data, 2, shuffle=kind == "map", num_workers=workers)
        iterator = iter(loader)
        out = [next(iterator), next(iterator), *(getattr(iterator, name) for name in HELD)]
        out += [iterator._dataset is data, iterator._index_sampler is loader.batch_sampler, iterator._collate_fn is loader.collate_fn,
                next(iterator._sampler_iter) if kind == "map" and not workers else None]
        iterator._reset(loader)
        return [*out, iterator._num_yielded, *iterator, iterator._num_yielded, outcome(lambda: pickle.dumps(iterator))]
    same(case)


def resumable(torch):
    """A loader that goes on where another one stopped."""
    parts = torch.utils.data

    class Iterator(parts.dataloader._BaseDataLoaderIter):
        def __init__(self, loader, done):
            super().__init__(loader)
            self._sampler_iter = itertools.islice(self._index_sampler, done, None)
            self._num_yielded = done
            self._fetcher = parts._DatasetKind.create_fetcher(self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last)

        def _next_data(self):
            return self._fetcher.fetch(self._next_index())

    class Loader(parts.DataLoader):
        done = 0

        def _get_iterator(self):
            return Iterator(self, self.done)
    return Loader


def test_an_iterator_of_ones_own():
    def case(torch):
        loader = resumable(torch)(Numbers(9), 2)
        whole = list(loader)
        loader.done = 3
        iterator = iter(loader)
        return whole, list(iterator), iterator._num_yielded, isinstance(iterator, torch.utils.data.dataloader._BaseDataLoaderIter)
    same(case)


def test_exchanged_methods(monkeypatch):
    """speechbrain counts on with the iterator's own fields, and puts its functions in the place of these."""
    def case(torch):
        base = torch.utils.data.dataloader._BaseDataLoaderIter
        begin = base.__init__

        def init(self, loader):
            begin(self, loader)
            for _ in range(2):
                next(self._sampler_iter)
            self._num_yielded = 2
        monkeypatch.setattr(base, "__init__", init)
        return list(torch.utils.data.DataLoader(Numbers(9), 2))
    same(case)


class Own:
    """A dataset that is its own iterator, and begins anew when it is asked for one."""

    def __iter__(self):
        self.at = 0
        return self

    def __next__(self):
        self.at += 1
        if self.at > 7:
            raise StopIteration
        return self.at


@pytest.mark.parametrize("drop_last", [False, True])
def test_a_dataset_that_is_its_own_iterator(drop_last):
    def case(torch):
        dataset = type("Dataset", (Own, torch.utils.data.IterableDataset), {})()
        fetcher = torch.utils.data._DatasetKind.create_fetcher(torch.utils.data._DatasetKind.Iterable, dataset, True, list, drop_last)
        first = fetcher.fetch([None] * 3), fetcher.ended, fetcher.dataset_iter is dataset
        loader = torch.utils.data.DataLoader(dataset, 3, drop_last=drop_last)
        return first, list(loader), list(torch.utils.data.BatchSampler(Own(), 3, True))
    same(case)


def test_a_fetcher_put_in_place_of_torch_s(monkeypatch):
    """axolotl's takes lists of lists."""
    def case(torch):
        fetch = torch.utils.data._utils.fetch

        class Nested(fetch._BaseDatasetFetcher):
            def fetch(self, index):
                return [self.dataset[i] * 10 for i in index]
        monkeypatch.setattr(fetch, "_MapDatasetFetcher", Nested)
        return [list(torch.utils.data.DataLoader(Numbers(5), 2, num_workers=n)) for n in (0, 1)]
    same(case)


# -- processes of a library's own ---------------------------------------------------------------------------------------


def answers(torch, asked, answered, done):
    """torchdata's worker in short."""
    parts = torch.utils.data._utils
    parts.signal_handling._set_worker_signal_handlers()
    watchdog = parts.worker.ManagerWatchdog()
    while watchdog.is_alive():
        try:
            request = asked.get(timeout=parts.MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        if request is None:
            break
        if isinstance(request, parts.worker._ResumeIteration):
            answered.put((request, None))
        elif request == 9:
            os._exit(9)
        elif request == 5:
            answered.put((request, parts.worker._IterableDatasetStopIteration(0)))
        else:
            x = torch.full((64, 64), request / 100)
            answered.put((request, (x @ x).exp().sum(0)[:2] * 0 + request))
    answered.close()


@BOTH
def test_workers_of_a_library(torch):
    """A process that is forked after the parent compiled what it computes answers; how it ended is told once, and it can still be waited for."""
    parts = torch.utils.data._utils
    asked, answered, done = torch.multiprocessing.Queue(), torch.multiprocessing.Queue(), torch.multiprocessing.Event()
    with program.tier("compiled"), warnings.catch_warnings():
        for k in range(3):
            (ours.full((64, 64), k / 100) @ ours.full((64, 64), k / 100)).exp().sum(0)[:2].tolist()
        warnings.simplefilter("ignore")
        worker = torch.multiprocessing.Process(target=answers, args=(torch, asked, answered, done), daemon=True)
        worker.start()
    parts.signal_handling._set_worker_pids(1, (worker.pid,))
    try:
        for request in (1, parts.worker._ResumeIteration(4), 5, 2):
            asked.put(request)
            got, x = answered.get(timeout=30)
            assert got == request
            assert (x.tolist() == [request] * 2 if isinstance(request, int) and request < 5 else True)
        parts.signal_handling._error_if_any_worker_fails()
        with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid {worker.pid}\) exited unexpectedly with exit code 9. Details are lost"):
            asked.put(9)
            assert multiprocessing.connection.wait([worker.sentinel], 30)  # the handler that a loader of an earlier test has set may raise here
            time.sleep(0.1)
            parts.signal_handling._error_if_any_worker_fails()
        parts.signal_handling._error_if_any_worker_fails()
        worker.join(10)
        assert worker.exitcode == 9
    finally:
        parts.signal_handling._remove_worker_pids(1)
        worker.kill()


ENDED = """if True:
    import sys
    if sys.argv[1] == "torchlike":
        import torchlike
        torchlike.install()
    import os, signal, time
    from torch.utils.data._utils import signal_handling
    signal.signal(signal.SIGCHLD, lambda *_: print("seen"))
    signal_handling._set_SIGCHLD_handler()
    signal_handling._set_SIGCHLD_handler()
    for end in (lambda: os._exit(0), lambda: os._exit(4), lambda: os.kill(os.getpid(), 9)):
        pid = os.fork()
        if not pid:
            time.sleep(0.5)
            end()
        signal_handling._set_worker_pids(5, (pid,))
        try:
            time.sleep(20 if end.__code__.co_consts[1:] != (0,) else 2)
        except RuntimeError as e:
            print(str(e).replace(str(pid), "PID"))
        signal_handling._remove_worker_pids(5)
        print(os.waitpid(pid, 0)[1])
"""


def test_a_worker_s_end_interrupts_its_parent():
    said = [subprocess.run([sys.executable, "-W", "ignore", "-c", ENDED, which], capture_output=True, text=True, check=True, timeout=100).stdout
            for which in ("torch", "torchlike")]
    assert said[0] == said[1] and said[0].count("DataLoader worker (pid PID)") == 2


def test_errors_about_watched_processes():
    def case(torch):
        s = torch.utils.data._utils.signal_handling
        out = [outcome(lambda: s._set_worker_pids(1, [2])), s._set_worker_pids(1, (2,)), outcome(lambda: s._set_worker_pids(1, (2,)))]
        return [*out, s._remove_worker_pids(1), outcome(lambda: s._remove_worker_pids(7))]
    same(case)


@BOTH
def test_pinning_in_a_thread(torch, monkeypatch):
    monkeypatch.setattr(torch.accelerator, "set_device_index", lambda device: None)
    came, gone, done = queue.Queue(), queue.Queue(), threading.Event()

    class Batch:
        def pin_memory(self):
            return "pinned"
    thread = threading.Thread(target=torch.utils.data._utils.pin_memory._pin_memory_loop, args=(came, gone, 0, done, None))
    thread.start()
    failure = torch.utils.data._utils.ExceptionWrapper(exc_info=(ValueError, ValueError("x"), None))
    for pair in ((0, [Batch(), 1]), (1, failure)):
        came.put(pair)
    assert gone.get(timeout=10) == (0, ["pinned", 1]) and gone.get(timeout=10)[1] is failure
    done.set()
    came.put((None, None))
    thread.join(10)
    assert not thread.is_alive()


def test_names_of_threads():
    def case(torch):
        out = []

        def named():
            torch.multiprocessing._set_thread_name("a_name_that_is_too_long")
            out.append(torch.multiprocessing._get_thread_name())
        thread = threading.Thread(target=named)
        thread.start()
        thread.join()
        return out
    same(case)


def test_a_forked_process_runs_what_its_parent_compiled():
    """XLA's threads are not there: such a process hung."""
    def work(answered):
        x = ours.full((64, 64), 0.01)
        answered.put((x @ x).exp().sum().item())
    answered = multiprocessing.Queue()
    with program.tier("compiled"):
        for _ in range(3):
            work(answered)
            wanted = answered.get(timeout=10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            process = multiprocessing.get_context("fork").Process(target=work, args=(answered,), daemon=True)
            process.start()
        try:
            assert answered.get(timeout=30) == pytest.approx(wanted, rel=1e-6)
        finally:
            process.kill()
            process.join()


# -- data pipes ---------------------------------------------------------------------------------------------------------


def test_pipes_for_workers():
    def case(torch):
        pipes = torch.utils.data.datapipes
        wrap, wrap_map = pipes.datapipe._IterDataPipeSerializationWrapper, pipes.datapipe._MapDataPipeSerializationWrapper
        pipe = wrap(pipes.iter.IterableWrapper(range(12)).shuffle().sharding_filter())
        out = [len(wrap(pipes.iter.IterableWrapper(range(3)))), isinstance(pipe, torch.utils.data.IterDataPipe), outcome(lambda: len(wrap(iter([]))))]
        torch.utils.data.graph_settings.apply_sharding(pipe, 2, 1)
        torch.utils.data.graph_settings.apply_random_seed(pipe, torch.Generator().manual_seed(5))
        out += [list(pipe), list(pickle.loads(pickle.dumps(wrap(pipes.iter.IterableWrapper(range(3))))))]
        mapped = pickle.loads(pickle.dumps(wrap_map(pipes.map.SequenceWrapper([3, 4]))))
        out += [mapped[1], len(mapped), outcome(lambda: torch.utils.data.dataloader._sharding_worker_init_fn(None, 1, 0, 0))]
        torch.manual_seed(1)
        return [*out, [list(torch.utils.data.DataLoader(pipe, 2, num_workers=n)) for n in (0, 2)]]
    same(case)


def test_names_that_torch_no_longer_wants_used():
    def case(torch):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            out = [torch.has_cuda, torch.has_mps, torch.has_cudnn, torch.set_vital("Dataloader", "enabled", "True")]
        return [*out, [(str(w.message), os.path.basename(w.filename)) for w in said], torch._utils.cpu_count(), torch.utils.data._utils.HAS_NUMPY,
                torch.utils.data._utils.python_exit_status]
    same(case)


def test_batches_that_default_collate_refuses():
    def case(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, of prototypes
            tensors = torch.nested.nested_tensor([torch.ones(2)]), torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr(), torch.eye(2).to_sparse_bsc((1, 1))
            return [outcome(lambda x=x: torch.utils.data.default_collate([x, x])) for x in tensors]
    same(case)
