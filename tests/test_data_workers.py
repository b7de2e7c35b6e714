"""DataLoader with worker processes: real torch's batches and errors, no hang, and nothing left behind."""
import contextlib
import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch as real
from test_data import Numbers, outcome, plain, stream

import torchlike as ours
from torchlike._core import program, rng_blocks

ROOT = Path(__file__).parent.parent


@contextlib.contextmanager
def within(seconds):
    """Fails instead of hanging."""
    def stop(*_):
        raise TimeoutError(f"not done after {seconds} s")
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def shared_memory() -> set[str]:
    """Segments in /dev/shm, but for semaphores, which come and go with test processes that run beside this one, and real torch's files, which
    stay where a test ends one of its workers; torchlike's memory has no names."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith(("sem.", "torch_"))}


@pytest.fixture(autouse=True)
def nothing_left():
    """After each test: no process, no descriptor and no shared memory that was not there before."""
    files, memory = len(os.listdir("/proc/self/fd")), shared_memory()
    with within(100):
        yield
    gc.collect()
    assert not multiprocessing.active_children()
    end = time.monotonic() + 3  # real torch closes some from threads
    while len(os.listdir("/proc/self/fd")) > files + 1 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) <= files + 1  # the interpreter may open one for random numbers
    while not shared_memory() <= memory and time.monotonic() < end:
        time.sleep(0.05)
    assert shared_memory() <= memory


def load(dataset=None, epochs=1, make=None, **options):
    """A case: the batches of some epochs and a number drawn from the default generator after each."""
    def case(torch):
        generator = options.get("generator")
        extra = {} if generator is None else {"generator": torch.Generator().manual_seed(generator)}
        data = torch.utils.data.DataLoader(make(torch) if make else dataset or Numbers(),
                                           **{"num_workers": 2, **options, **extra})
        return [(read(data, torch), torch.rand(()).item()) for _ in range(epochs)]
    return case


def read(data, torch):
    """All batches. After an error real torch's workers hang on in a cycle, and take 10 s to end if collected there."""
    batches = iter(data)
    try:
        return list(batches)
    except Exception:
        if torch is real:
            batches._shutdown_workers()
        raise


def seen_by_worker(torch):
    def get(i):
        info = torch.utils.data.get_worker_info()
        return info.id, info.num_workers, info.seed, torch.initial_seed(), np.random.randint(1 << 30), torch.rand(2)
    return Numbers(4, get)


def uneven(torch):
    class Uneven(torch.utils.data.IterableDataset):
        def __iter__(self):
            worker = torch.utils.data.get_worker_info().id
            return iter([(worker, i) for i in range([2, 5][worker])])
    return Uneven()


SAME = {
    "plain": load(),
    "shuffle": load(shuffle=True, batch_size=4, epochs=2),
    "shuffle_generator": load(shuffle=True, batch_size=4, generator=9, epochs=2),
    "persistent": load(shuffle=True, batch_size=3, persistent_workers=True, epochs=3),
    "prefetch": load(prefetch_factor=5, batch_size=3),
    "single": load(batch_size=None, num_workers=1),
    "batch_sampler": load(batch_sampler=[[1, 2], [3], [4, 5]]),
    "seeds": load(make=seen_by_worker, batch_size=None, epochs=2),
    "seeds_persistent": load(make=seen_by_worker, batch_size=None, epochs=2, persistent_workers=True),
    "tensors": load(make=lambda torch: torch.utils.data.TensorDataset(torch.arange(12.0).view(6, 2), torch.arange(6)),
                    batch_size=4),
    "computing": load(make=lambda torch: Numbers(6, lambda i: (torch.ones(3) * i + torch.arange(3)).pow(2).sum()),
                      batch_size=3),
    "iterable": load(make=stream, batch_size=4),
    "iterable_uneven": load(make=uneven, batch_size=None),
    "iterable_uneven_batches": load(make=uneven, batch_size=2, drop_last=True),
    "iterable_persistent": load(make=uneven, batch_size=None, persistent_workers=True, epochs=2),
    "iterable_too_long": load(make=lambda torch: stream(torch, 5, 5), batch_size=2),
    "text": load(dataset=Numbers(4, lambda i: {"s": str(i), "a": np.full(2, i, np.float32)}), batch_size=2),
    "large": load(dataset=Numbers(4, lambda i: np.full((300, 300), i)), batch_size=2),
    "empty": load(dataset=Numbers(0)),
}


@pytest.mark.parametrize("case", SAME.values(), ids=SAME)
def test_same_as_torch(case):
    assert outcome(case, ours) == outcome(case, real)


class Two(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def failing(make, at=3):
    def get(i):
        if i == at:
            make()
        return i
    return Numbers(6, get)


def throw(error):
    def go():
        raise error
    return go


FAILURES = {
    "value": load(failing(throw(ValueError("bad")))),
    "key": load(failing(throw(KeyError("k")))),
    "two_arguments": load(failing(throw(Two(1, 2)))),
    "unicode": load(failing(throw(UnicodeDecodeError("u", b"", 0, 1, "r")))),
    "init": load(worker_init_fn=lambda i: throw(ValueError("init"))()),
    "collate": load(collate_fn=lambda batch: throw(IndexError("collate"))()),
    "timeout": load(failing(lambda: time.sleep(2.5), at=0), num_workers=1, timeout=1),
    "prefetch_zero": load(prefetch_factor=0),
}


def without_frames(text):
    """A traceback without what differs: files, lines, code, process ids."""
    kept = [line for line in text.splitlines() if not line.startswith("  ")]
    return re.sub(r"pid(\(s\))? \d+", "PID", "\n".join(kept))


@pytest.mark.parametrize("case", FAILURES.values(), ids=FAILURES)
def test_failures_are_torchs(case):
    (kind, text), _, _ = outcome(case, ours)
    (wanted_kind, wanted_text), _, _ = outcome(case, real)
    assert kind == wanted_kind
    assert without_frames(text) == without_frames(wanted_text)


DEATHS = {
    "exit": lambda: os._exit(7),
    "sys_exit": lambda: sys.exit(3),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "bus_error": lambda: os.kill(os.getpid(), signal.SIGBUS),
}


@pytest.mark.parametrize("end", DEATHS.values(), ids=DEATHS)
def test_worker_that_dies(end):
    """Real torch says that a worker died, or how it died, whichever it notices first; ours says both."""
    texts = []
    for torch in (ours, real):
        loader = torch.utils.data.DataLoader(failing(end), None, num_workers=2)
        with pytest.raises(RuntimeError) as caught:
            read(loader, torch)
        texts.append([without_frames(str(e)) for e in (caught.value, caught.value.__cause__) if e is not None])
    assert texts[0][0] == "DataLoader worker (PID) exited unexpectedly"
    assert len(texts[0]) == 2
    assert set(texts[1]) <= set(texts[0])


def test_iteration_goes_on_after_an_exception():
    def case(torch):
        batches = iter(torch.utils.data.DataLoader(failing(throw(ValueError("three"))), num_workers=2))
        got = []
        for _ in range(8):
            try:
                got.append(next(batches))
            except (ValueError, StopIteration) as error:
                got.append(type(error).__name__)
        return got
    assert outcome(case, ours) == outcome(case, real)


def test_data_that_cannot_be_sent_is_an_error():
    loader = ours.utils.data.DataLoader(Numbers(3, lambda i: lambda: i), None, num_workers=1)
    with pytest.raises((AttributeError, TypeError), match="(?s)in DataLoader worker process 0.*[Pp]ickle"):
        next(iter(loader))


def test_local_exception_class():
    class Mine(Exception):
        pass

    loader = ours.utils.data.DataLoader(failing(throw(Mine("here"))), num_workers=1)
    with pytest.raises(RuntimeError, match="(?s)Caught Mine in DataLoader worker process 0.*here"):
        list(loader)


def test_out_of_order():
    def get(i):
        if i == 0:
            time.sleep(1.5)
        return i

    got = [int(x) for x in ours.utils.data.DataLoader(Numbers(8, get), num_workers=2, in_order=False)]
    assert sorted(got) == list(range(8))
    assert got.index(0) >= 3


def test_abandoned_epoch_of_persistent_workers():
    loader = ours.utils.data.DataLoader(Numbers(20), 2, num_workers=2, persistent_workers=True)
    first = iter(loader)
    next(first)
    workers = [p.pid for p in multiprocessing.active_children()]
    assert [x.tolist() for x in loader] == [[i, i + 1] for i in range(0, 20, 2)]
    assert [p.pid for p in multiprocessing.active_children()] == workers
    assert iter(loader) is first
    del loader, first


def test_leaving_early_ends_the_workers():
    for x in ours.utils.data.DataLoader(Numbers(100, lambda i: np.zeros((200, 200))), num_workers=2):  # noqa: B007
        break
    assert x.shape == (1, 200, 200)


@pytest.mark.parametrize("torch", [real, ours], ids=["torch", "torchlike"])
def test_libraries_look_at_the_workers_and_end_them(torch):
    """As ultralytics does when a loader goes."""
    iterator = iter(torch.utils.data.DataLoader(Numbers(40), num_workers=2))
    next(iterator)
    workers = iterator._workers
    assert len(workers) == 2 and all(w.is_alive() for w in workers) and workers[0].pid != workers[1].pid
    workers[0].terminate()
    iterator._shutdown_workers()
    assert not any(w.is_alive() for w in workers)


def test_loader_inside_a_loop_over_another():
    outer = ours.utils.data.DataLoader(Numbers(4), num_workers=1)
    inner = ours.utils.data.DataLoader(Numbers(3), num_workers=1, persistent_workers=True)
    assert [(int(a), [int(b) for b in inner]) for a in outer] == [(i, [0, 1, 2]) for i in range(4)]
    del inner, outer


def test_many_live_batches_hold_few_descriptors():
    before = len(os.listdir("/proc/self/fd"))
    loader = ours.utils.data.DataLoader(Numbers(600, lambda i: np.full(20_000, i)), None, num_workers=1,
                                        collate_fn=lambda x: x)
    batches = list(loader)
    assert len(os.listdir("/proc/self/fd")) - before < 300
    for i, b in enumerate(batches):
        assert b.flags.writeable
        assert (b == i).all()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_start_methods(method):
    data = ours.utils.data.TensorDataset(ours.arange(6.0).view(3, 2))
    loader = ours.utils.data.DataLoader(data, 2, num_workers=1, multiprocessing_context=method)
    assert plain(list(loader)) == plain([[real.tensor([[0.0, 1], [2, 3]])], [real.tensor([[4.0, 5]])]])


def test_workers_beside_busy_xla():
    """Loaders start again and again while threads keep XLA busy; workers compute on tensors that XLA made."""
    step = jax.jit(lambda a: a @ a / 300 + 1)
    done = threading.Event()

    def busy():
        x = jnp.ones((300, 300))
        while not done.is_set():
            x = step(x)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for i in range(8):
            with program.tier("compiled"):
                table = (ours.arange(12.0).view(6, 2) * 2 + i).exp()
                pending = table * 2  # recorded, not run yet
                _ = table.sum().item()
                data = Numbers(6, lambda k, table=table, pending=pending: (table[k] + 1, pending[k].sum()))
                loader = ours.utils.data.DataLoader(data, 3, num_workers=2)
                rows, sums = zip(*loader)
            wanted = np.exp(np.arange(12, dtype=np.float32).reshape(6, 2) * 2 + i)
            np.testing.assert_allclose(np.concatenate([r.numpy() for r in rows]), wanted + 1, rtol=1e-6)
            np.testing.assert_allclose(np.concatenate([s.numpy() for s in sums]), 2 * wanted.sum(1), rtol=1e-6)
    finally:
        done.set()
        thread.join()


def test_worker_runs_what_the_parent_compiled():
    """The parent's executables are of no use in a forked worker: XLA's threads are not there."""
    def work(k):
        x = ours.full((64, 64), float(k))
        return (x @ x).exp().sum().item() + k

    with program.tier("compiled"):
        wanted = [work(k) for k in (0, 0, 0)]
    loader = ours.utils.data.DataLoader(Numbers(3, lambda _: work(0)), None, num_workers=1, timeout=20)
    np.testing.assert_allclose([float(x) for x in loader], wanted, rtol=1e-6)


def test_worker_draws_normals_that_xla_makes_for_the_parent():
    """A dataset that adds noise to its images, after a large model's initial values."""
    def noise(k):
        return ours.randn(300_000, generator=ours.Generator().manual_seed(k)).numpy()

    for kernel in (rng_blocks.MIDDLE_BLOCKS, rng_blocks.LARGE_BLOCKS):
        kernel.spent(1)
        assert kernel.call is not None
    loader = ours.utils.data.DataLoader(Numbers(2, noise), None, num_workers=1, timeout=30)
    for k, made in enumerate(loader):
        assert np.array_equal(made, noise(k))


def threads_of_xla(_):
    names = [Path(f"/proc/self/task/{t}/comm").read_text() for t in os.listdir("/proc/self/task")]
    (ours.ones(50, 50) @ ours.ones(50, 50)).sum().item()
    return sum("XLA" in n for n in names), len(os.listdir("/proc/self/task"))


def test_workers_start_no_xla():
    loader = ours.utils.data.DataLoader(Numbers(3, threads_of_xla), None, num_workers=1)
    for xla, threads in loader:
        assert xla == 0
        assert threads <= 3  # itself, its listener, and at most one of BLAS


def run_script(source, **options):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(source)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=env, **options)


SLOW = """
    import multiprocessing, signal, time, warnings
    import torchlike as torch
    warnings.simplefilter("ignore")  # of more workers than cores
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background of a shell ignores it
    class Slow:
        def __len__(self): return 1000
        def __getitem__(self, i):
            time.sleep(0.05)
            return i
    loader = torch.utils.data.DataLoader(Slow(), num_workers=2)
    for i, x in enumerate(loader):
        if i == 0:
            print(*[p.pid for p in multiprocessing.active_children()], flush=True)
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pids, seconds):
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return [p for p in pids if alive(p)]


def test_no_orphans_when_the_parent_is_killed():
    with run_script(SLOW) as parent:
        workers = [int(p) for p in parent.stdout.readline().split()]
        assert len(workers) == 2
        parent.kill()
        parent.wait()
        assert wait_until_gone(workers, 15) == []


def test_ctrl_c():
    with run_script(SLOW, start_new_session=True) as parent:
        workers = [int(p) for p in parent.stdout.readline().split()]
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does, to all of them
        _, errors = parent.communicate(timeout=30)
        assert parent.returncode != 0
        assert errors.count("KeyboardInterrupt") == 1, errors
        assert errors.count("Traceback") == 1, errors
        assert wait_until_gone(workers, 5) == []


def test_exit_in_the_middle_is_quiet():
    source = SLOW.replace("print(*[p.pid", "print('leaving', flush=True); raise SystemExit; print(*[p.pid")
    with run_script(source) as parent:
        out, errors = parent.communicate(timeout=60)
        assert (out, errors, parent.returncode) == ("leaving\n", "", 0)


@pytest.mark.parametrize("torch", [real, ours])
def test_a_warning_is_shown_once_however_often_workers_start(torch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        filters = list(warnings.filters)
        for _ in range(3):
            warnings.warn("said in each epoch", stacklevel=1)
            list(torch.utils.data.DataLoader(Numbers(4), 2, num_workers=1))
        after = list(warnings.filters)
    assert [str(w.message) for w in caught if "fork()" not in str(w.message)] == ["said in each epoch"]
    assert after == filters
