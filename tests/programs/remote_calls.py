"""Calls between three workers, and references: rank 0 prints what it sees. The same under torch and torchlike."""
import gc
import os
import re
import threading
import time

import torch
from torch.distributed import rpc

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
KEPT, RELEASED = [], threading.Event()


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class Counter:
    def __init__(self, start=0):
        self.n, self.at = torch.tensor(float(start)), rpc.get_worker_info().name

    def add(self, k, twice=False):
        self.n += k * (1 + twice)
        return self.n

    def where(self):
        return self.at

    def fail(self):
        raise ValueError(f"at {self.at}")

    @staticmethod
    def plain(x):
        return -x

    @rpc.functions.async_execution
    def later(self, to, x):
        return rpc.rpc_async(to, torch.mul, args=(x, 10)).then(lambda done: done.wait() + self.n)

    @classmethod
    @rpc.functions.async_execution
    def by_class(cls, to, x):
        return rpc.rpc_async(to, torch.neg, args=(x,))


def raised(kind, *args):
    raise kind(*args)


def slow(seconds):
    time.sleep(seconds)
    return seconds


def wait_for_release():
    return RELEASED.wait(60)


def release():
    RELEASED.set()


def name():
    return rpc.get_worker_info().name


def changed(x):
    x += 1
    return x


def facts(x, y=None):
    return type(x).__name__, x is y, x.requires_grad, x.is_leaf, x.stride(), x.dtype


def parts(tensors, more, word=""):
    return {"sum": sum(tensors), "word": word[::-1], "more": {k: v * 2 for k, v in more.items()}}


def chain(ttl):
    """Each worker calls the next one."""
    here = rpc.get_worker_info().id
    return [here] if ttl == 0 else [here, *rpc.rpc_sync(f"worker{(here + 1) % WORLD}", chain, args=(ttl - 1,))]


def kept(rref):
    KEPT[:] = [rref]
    return rref.is_owner(), rref.owner_name(), str(rref)[:5]


def dropped():
    KEPT.clear()
    gc.collect()


def owned():
    return int(rpc._rref_context_get_debug_info()["num_owner_rrefs"])


def value(rref):
    return rref.to_here()


def handed_on(rref, to):
    return rpc.rpc_sync(to, value, args=(rref,)), rpc.remote(to, value, args=(rref,))


def mine(n):
    return [rpc.RRef(i) for i in range(n)]


@rpc.functions.async_execution
def later(to, x, fails=False):
    return rpc.rpc_async(to, raised, args=(KeyError, "no")) if fails else rpc.rpc_async(to, torch.add, args=(x, 1))


@rpc.functions.async_execution
def not_later():
    return 3


def show(what, run):
    try:
        found = run()
    except Exception as error:
        lines = str(error).replace("\\n", "\n").splitlines()
        found = type(error).__name__, lines[:2] if "WorkerInfo" in str(error) else lines[0][lines[0].find("Functions decorated") if "decorated" in lines[0] else 0:]
    print(what, re.sub(r"GloballyUniqueId\(created_on=(\d), local_id=\d+\)", r"ID\1", str(found)), flush=True)


def error_of(run):
    """Its class alone: the text of a binding's TypeError is its own."""
    try:
        run()
    except Exception as error:
        return type(error).__name__


def until(question, wanted):
    """Deleting is told in the background."""
    for _ in range(200):
        if question() == wanted:
            return wanted
        time.sleep(0.05)
    return question()


def confirmed(r):
    """Once the owner's word is there, which nobody waits for."""
    ends = time.monotonic() + 10
    while not r.confirmed_by_owner() and time.monotonic() < ends:
        time.sleep(0.01)
    return r.confirmed_by_owner()


def calls():
    x = torch.arange(4.0)
    show("by name, number and info", lambda: [rpc.rpc_sync(to, name) for to in ("worker1", 2, rpc.get_worker_info("worker0"))])
    show("operators", lambda: (rpc.rpc_sync("worker1", torch.add, args=(x, 1)), rpc.rpc_sync("worker2", torch.sum, args=(x,), kwargs={"dim": 0})))
    show("copies", lambda: (rpc.rpc_sync("worker1", changed, args=(x,)), rpc.rpc_sync("worker0", changed, args=(x,)), x))
    w = torch.ones(2, 3, requires_grad=True)
    show("facts", lambda: [rpc.rpc_sync("worker1", facts, args=a) for a in ((w, w), (w * 2, w), (w.detach().t(),), (torch.nn.Parameter(w),), (x.bfloat16(),))])
    show("inside of others", lambda: rpc.rpc_sync("worker2", parts, args=([x, x], {"a": x[1:], "b": 3}), kwargs={"word": "abc"}))
    show("methods", lambda: (rpc.rpc_sync("worker1", Counter(3).add, args=(2,)), rpc.rpc_sync("worker1", Counter.plain, args=(2,)),
                             type(rpc.rpc_sync("worker1", Counter, args=(1,))).__name__))
    show("nested", lambda: rpc.rpc_sync("worker1", chain, args=(7,)))
    show("many", lambda: sum(f.wait() for f in [rpc.rpc_async(i % WORLD, torch.mul, args=(x, i)) for i in range(60)]))
    for kind, args in ((ValueError, ("a\nb",)), (TypeError, ("t",)), (KeyError, ("k",)), (Odd, (1, 2)), (ZeroDivisionError, ())):
        show(f"raises {kind.__name__}", lambda kind=kind, args=args: rpc.rpc_sync("worker1", raised, args=(kind, *args)))
    show("no such attribute", lambda: rpc.rpc_sync("worker1", torch.add, args=(torch.ones(2), torch.ones(3))))
    show("nobody", lambda: rpc.rpc_sync("worker9", name))
    show("no number", lambda: rpc.rpc_sync(9, name))
    show("no worker", lambda: rpc.rpc_sync(1.5, name))
    show("no function", lambda: rpc.rpc_sync(1, 3))
    show("a lambda", lambda: rpc.rpc_sync(1, lambda: 3))
    show("too slow", lambda: rpc.rpc_sync("worker1", slow, args=(1.0,), timeout=0.1))
    show("below no time", lambda: rpc.rpc_sync("worker1", slow, args=(1.0,), timeout=-5))
    print("no number of seconds", [error_of(lambda bad=bad: rpc.rpc_sync("worker1", name, timeout=bad)) for bad in ("a", None)])
    print("who", error_of(lambda: rpc.get_worker_info(rpc.get_worker_info())))
    show("slow enough", lambda: rpc.rpc_sync("worker1", slow, args=(0.2,), timeout=0))
    done = rpc.rpc_async("worker1", torch.neg, args=(x,))
    show("future", lambda: (done.wait(), done.done(), done.value(), done.then(lambda f: f.wait() * 2).wait()))
    failed = rpc.rpc_async("worker1", raised, args=(ValueError, "v"))
    show("future that failed", lambda: failed.then(lambda f: f.wait()).wait())
    blocked = rpc.rpc_async("worker1", wait_for_release)
    show("the first failure ends the waiting", lambda: torch.futures.wait_all([blocked, rpc.rpc_async(2, raised, args=(ValueError, "v"))]))
    print("done", blocked.done(), rpc.rpc_sync("worker1", release), blocked.wait())
    nested = rpc.rpc_async("worker1", name).then(lambda f: rpc.rpc_sync("worker2", torch.add, args=(x, len(f.wait()))))
    show("a call in a callback", lambda: nested.wait())
    show("later", lambda: (rpc.rpc_sync("worker1", later, args=("worker2", x)), rpc.remote("worker1", later, args=("worker2", x)).to_here()))
    show("later, but fails", lambda: rpc.rpc_sync("worker1", later, args=("worker2", x, True)))
    show("not later", lambda: rpc.rpc_sync("worker1", not_later))
    with rpc.api._wait_all():
        waited = rpc.rpc_async("worker1", slow, args=(0.1,))
    print("waited", waited.done())


def references():
    x = torch.arange(3.0)
    r = rpc.remote("worker1", torch.add, args=(x, 1))
    show("remote", lambda: (r, r.to_here(), r.is_owner(), r.owner(), r.owner_name(), confirmed(r)))
    show("local_value", lambda: r.local_value())
    show("own", lambda: (rpc.RRef(x), rpc.RRef(x).local_value() is x, rpc.RRef(x).is_owner(), rpc.RRef(x).confirmed_by_owner()))
    show("at itself", lambda: (rpc.remote("worker0", torch.add, args=(x, 1)), rpc.remote("worker0", torch.add, args=(x, 1)).to_here()))
    c = rpc.remote("worker1", Counter, args=(5,))
    show("methods", lambda: (c.rpc_sync().add(1), c.rpc_async().add(1, twice=True).wait(), c.remote().add(10).to_here(), c.to_here().n, c.rpc_sync().where()))
    show("methods that return later", lambda: (c.rpc_sync().later("worker2", x), c.rpc_async().later("worker0", x).wait(), c.remote().by_class("worker2", x).to_here()))
    show("a method that fails", lambda: c.rpc_sync().fail())
    show("no such method", lambda: c.rpc_sync().nothing())
    show("no such method, later", lambda: c.rpc_async().nothing().wait())
    bad = rpc.remote("worker2", raised, args=(KeyError, "k"))
    show("what failed", lambda: bad.to_here())
    show("classes", lambda: (rpc.remote("worker1", Counter)._get_type().__name__, r._get_type(blocking=False).wait().__name__, rpc.RRef([3])._get_type().__name__))
    late = rpc.remote("worker1", slow, args=(1.0,))
    show("too slow", lambda: late.to_here(timeout=0.1))
    show("then it comes", lambda: late.to_here())
    show("arguments", lambda: [rpc.rpc_sync(to, kept, args=(c,)) for to in range(WORLD)])
    here = rpc.RRef({"a": 1})
    show("own as argument", lambda: [rpc.rpc_sync(to, kept, args=(here,)) for to in range(WORLD)])
    show("handed on", lambda: [(a, b.to_here(), b.owner_name()) for a, b in [rpc.rpc_sync("worker1", handed_on, args=(r, "worker2"))]])
    show("returned", lambda: [(m.owner_name(), m.to_here()) for m in rpc.rpc_sync("worker2", mine, args=(3,))])
    import pickle
    show("pickle", lambda: pickle.dumps(r))
    show("type_hint", lambda: rpc.RRef(3, type_hint=int))
    r = c = bad = late = here = None
    for k in range(WORLD):
        rpc.rpc_sync(k, dropped)
    counts = [0, 1]
    while len(set(counts[-5:])) > 1:  # what was let go is told in the background
        time.sleep(0.1)
        counts.append(rpc.rpc_sync("worker1", owned))
    others = counts[-1]
    other = rpc.remote("worker1", Counter)
    other.to_here()
    print("one more", until(lambda: rpc.rpc_sync("worker1", owned) - others, 1))
    rpc.rpc_sync("worker2", kept, args=(other,))
    del other
    time.sleep(0.2)
    print("worker2 keeps it", rpc.rpc_sync("worker1", owned) - others)
    rpc.rpc_sync("worker2", dropped)
    print("none", until(lambda: rpc.rpc_sync("worker1", owned) - others, 0))


def rest():
    show("gather", lambda: sorted(rpc.api._all_gather(RANK * 2).items()))
    rpc.api._barrier({f"worker{i}" for i in range(WORLD)})


def before():
    show("not begun", lambda: rpc.rpc_sync("worker1", name))
    show("no references", lambda: rpc.RRef(1))
    show("no end", lambda: rpc.shutdown())
    show("backend", lambda: rpc.init_rpc("w", backend=3))
    show("options", lambda: rpc.init_rpc("w", rpc_backend_options=3))
    for bad in ("abc*", "", "a" * 128):
        show("name", lambda bad=bad: rpc.WorkerInfo(bad, 0))
    show("infos", lambda: (rpc.WorkerInfo("a", 1), rpc.WorkerInfo("a", 1) == rpc.WorkerInfo("a", 1), len({rpc.WorkerInfo("a", 1), rpc.WorkerInfo("a", 1)})))
    print("not text, no number", error_of(lambda: rpc.WorkerInfo(3, 0)), error_of(lambda: rpc.WorkerInfo("a", "1")))
    for bad in ({"num_worker_threads": 1.5}, {"rpc_timeout": "a"}, {"init_method": 3}, {"num_worker_threads": 1}):
        print(bad, error_of(lambda bad=bad: rpc.TensorPipeRpcBackendOptions(**bad)))
    show("no threads", lambda: rpc.TensorPipeRpcBackendOptions(num_worker_threads=0))
    show("negative", lambda: rpc.TensorPipeRpcBackendOptions(rpc_timeout=-1))
    for where in ("file://", "tcp://localhost", "abc://x"):
        for world in (None, 1):
            show(where, lambda where=where, world=world: rpc.init_rpc("w", rank=0, world_size=world, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(init_method=where)))
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=4, rpc_timeout=20)
    show("settings", lambda: (options.num_worker_threads, options.rpc_timeout, options.init_method, options.device_maps, options.devices))
    options.set_device_map("worker1", {"cuda:0": "cuda:1"})
    show("device maps", lambda: options.set_device_map("worker1", {"cuda:1": "cuda:2", 0: 3}))
    show("one to one", lambda: rpc.TensorPipeRpcBackendOptions(device_maps={"worker1": {0: 1, 1: 1}}))
    show("no GPU", lambda: rpc.TensorPipeRpcBackendOptions(devices=["cpu"]))
    show("backends", lambda: (list(rpc.BackendType), rpc.backend_registry.backend_registered("TENSORPIPE"), rpc.constants.UNSET_RPC_TIMEOUT, rpc.constants.DEFAULT_RPC_TIMEOUT_SEC))


if RANK == 0:
    before()
rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=WORLD, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(rpc_timeout=60))
if RANK == 0:
    show("twice", lambda: rpc.init_rpc("again", rank=RANK, world_size=WORLD))
    calls()
    references()
    last = rpc.remote("worker1", Counter)
    last.to_here()
    rest()
else:
    rpc.api._all_gather(RANK * 2)
    rpc.api._barrier({f"worker{i}" for i in range(WORLD)})
rpc.shutdown()
if RANK == 0:
    show("over", lambda: rpc.rpc_sync("worker1", name))
    show("gone", lambda: last.to_here())
    show("again", lambda: rpc.shutdown())
