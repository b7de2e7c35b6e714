"""The stores of torch.distributed: what they count and list, queues, copies, files that go, servers that are shared, classes of a program's own."""
import gc
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from same import same


def _asked(d, s):
    p = d.PrefixStore("q", d.PrefixStore("p", s))
    found = [s.num_keys(), p.num_keys(), p._underlying_non_prefix_store is s, p.has_extended_api(), getattr(s, "libuvBackend", None)]
    s.set("a", "1")
    p.set("k", "v")
    p.append("k", b"w")
    found += [s.get("p/q/k"), p.list_keys(), s.num_keys(), s.clone().get("a"), p.clone().get("k"), type(s.clone()) is type(s)]
    p.barrier("all", 1)
    p.set_timeout(timedelta(milliseconds=40))
    found.append(s.timeout)
    for call in (lambda: s.get("missing"), lambda: p.get("missing"), lambda: s.wait(["missing", "too"]), lambda: s.wait(["missing"], timedelta(milliseconds=20)),
                 lambda: s.add("k", 1), lambda: s.queue_push("line", "x"), lambda: p.queue_push("line", "y"), lambda: s.check(["line"]), lambda: s.queue_len("line"),
                 lambda: s.queue_pop("line"), lambda: s.queue_pop("line", False), lambda: s.queue_pop("line"), lambda: p.queue_pop("line"), lambda: s.queue_len("line")):
        try:
            found.append(call())
        except RuntimeError as error:
            found += [type(error).__name__, str(error)]
    with pytest.raises(TypeError):
        s.set("a", 3)
    return found


@same
def test_stores_count_list_queue_and_copy(torch, tmp_path):
    d, found = torch.distributed, []
    path = str(tmp_path / torch.__name__)
    for make in (d.HashStore, lambda: d.FileStore(path, 1), lambda: d.TCPStore("127.0.0.1", 0, 1, True),
                 lambda: d.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)):
        found += _asked(d, make())
    a, b = (d.TCPStore("127.0.0.1", port, 1, True, multi_tenant=True) for port in [_free_port()] * 2)
    a.set("shared", "here")
    found += [b.get("shared"), a.num_keys()]
    bound = socket.socket()
    bound.bind(("localhost", 0))
    host, port = bound.getsockname()
    taken = d.TCPStore(host, port, 1, is_master=True, master_listen_fd=bound.detach(), use_libuv=False)
    taken.set("a", "b")
    found.append(taken.get("a"))
    for call in (lambda: d.TCPStore("127.0.0.1", 1, timeout=timedelta(seconds=1)), lambda: d.rendezvous("tcp://127.0.0.1:2?rank=0&world_size=1", 0, 1)):
        try:
            call()
        except (RuntimeError, AssertionError) as error:
            found += [type(error).__name__, str(error)]
    store = next(d.rendezvous(f"tcp://127.0.0.1:{_free_port()}?rank=0&world_size=1&use_libuv=0"))[0]
    return [*found, store.libuvBackend]


def _free_port() -> int:
    with socket.create_server(("", 0)) as free:
        return free.getsockname()[1]


@same
def test_a_store_file_goes_with_its_last_user(torch, tmp_path):
    found = []
    for size, users in ((1, 2), (2, 2), (3, 2), (-1, 1)):
        path = str(tmp_path / f"{torch.__name__}{size}")
        stores = [torch.distributed.FileStore(path, size) for _ in range(users)]
        while stores:
            stores.pop()
            gc.collect()
            found.append(os.path.exists(path))
    return found


@same
def test_a_store_of_the_programs_own(torch):
    class Own(torch.distributed.Store):
        def __init__(self):
            super().__init__()
            self.seen, self.held = [], {}

        def set(self, key, value):
            self.seen.append(("set", key, value))
            self.held[key] = value

        def get(self, key):
            return self.held[key]

        def compare_set(self, key, expected, value):
            self.seen.append(("compare_set", key, expected, value))
            there = self.held.get(key)
            if there is None or there == expected:
                there = self.held[key] = value
            return there

    own = Own()
    inside = torch.distributed.PrefixStore("p", own)
    inside.set("a", "x")
    inside.append("a", "y")
    inside.append("b", b"z")
    inside.multi_set(["c", "d"], [b"1", b"2"])
    found = [inside.multi_get(["a", "b", "c", "d"]), inside.has_extended_api(), own.held, own.seen[0]]
    for call in (lambda: inside.check(["a"]), lambda: inside.add("a", 1), inside.num_keys, inside.list_keys, lambda: inside.queue_push("a", "b"), inside.clone,
                 lambda: torch.distributed.PrefixStore("p", None)):
        try:
            call()
        except (RuntimeError, NotImplementedError, ValueError) as error:
            found += [type(error).__name__, str(error)]
    return found


@same
def test_threads_make_stores_of_one_server(torch):
    """At the same time: one of them starts it, and the others are its users."""
    d, port, ready = torch.distributed, _free_port(), threading.Barrier(8)

    def made(k):
        ready.wait()
        store = d.TCPStore("127.0.0.1", port, 1, True, multi_tenant=True)
        store.add("stores", 1)
        return store
    with ThreadPoolExecutor(8) as threads:
        stores = list(threads.map(made, range(8)))
    return [s.get("stores") for s in stores]
