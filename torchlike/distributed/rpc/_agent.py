"""A worker's side of RPC: requests that it sent and waits for, and requests that others sent to it."""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from ...futures import Future
from ..autograd import _context
from ..store import DistNetworkError, DistStoreError, Store
from ._failure import Failure, failure_of
from ._message import Message, mapped, packed, unpacked
from ._pool import Pool
from ._wire import ANSWER, FAILURE, REQUEST, Connection, Part, Wire
from ._worker import WorkerInfo
from .constants import UNSET_RPC_TIMEOUT
from .internal import _internal_rpc_pickler
from .options import TensorPipeRpcBackendOptions, _DeviceMap

TIMED_OUT = "RPCErr:1:RPC ran for more than set timeout ({} ms) and will now be marked with an error"
_PATIENCE = 10.0  # seconds in which the last answers are surely sent
_SYSTEM_THREADS = 4  # run what never waits: references' messages, gradients


@dataclass
class _Asked:
    """A request under way."""

    future: Future
    to: int
    seconds: float
    ends: float  # when it fails
    raised: Callable[[Failure], Exception]
    counts: bool  # whether shutdown() waits for it


@dataclass
class _Request:
    """A request of another worker, or (`connection` is None) of this one's own."""

    connection: Connection | None
    number: int
    message: Message
    counts: bool


class TensorPipeAgent:
    """Sends and serves requests. (Torch's one agent has this name; here there are sockets.)

    A request names a handler of `handlers`: `handler(source, message)` returns the answer, or a Future of it.
    """

    def __init__(self, store: Store, name: str, rank: int, world_size: int | None, options: TensorPipeRpcBackendOptions) -> None:
        self.store, self.options, self.timeout = store, options, options.rpc_timeout
        self.is_static_group, self.info = bool(world_size), WorkerInfo(name, rank)
        self.handlers: dict[str, Callable[[int, Message], Any]] = {"gather": self._gather}
        self.waiting: set[str] = set()  # handlers that run functions of the program, which may wait for others
        self.pool = Pool(options.num_worker_threads, "torchlike rpc worker")
        self.system = Pool(_SYSTEM_THREADS, "torchlike rpc system")
        self.callbacks = Pool(options.num_worker_threads, "torchlike rpc callback")
        lock = threading.RLock()
        self.changed, self.timer = threading.Condition(lock), threading.Condition(lock)  # of what follows
        self.asked: dict[int, _Asked] = {}
        self.numbers, self.begun = itertools.count(), 0
        self.serving = 0  # requests of others that shutdown() waits for
        self.meeting: Counter[str] = Counter()  # other requests: by what is gathered
        self.wakes = math.inf  # when the thread that watches looks who is late; there is none while nobody can be
        self.closed = False
        self.gathered: dict[str, tuple[dict[int, Any], dict[int, Future]]] = {}
        self.gone: set[int] = set()
        self.reverse_maps: dict[str, _DeviceMap] = {}
        self.wire = Wire(store, rank, self._arrived, self._lost)
        self.known: dict[int, tuple[WorkerInfo, str]] = {}  # by number: who, and the address
        self.entered = False

    # who there is

    def enter(self, ranks: Iterable[int]) -> None:
        """Show this worker, which can serve now, in the store, and wait for the ranks given."""
        me, kind = self.info, b"static" if self.is_static_group else b"dynamic"
        if self.store.compare_set("kind", "", kind) != kind:
            raise RuntimeError("RPC group mixes statically and dynamically initialized members which is not supported.")
        self.store.set(f"worker/{me.id}", f"{me.name} {self.wire.address}")
        if not self.is_static_group:
            if self.store.compare_set(f"name/{me.name}", "", str(me.id)) != str(me.id).encode():
                raise RuntimeError(f"RPC worker name {me.name} is not unique.")
            self.store.add("joined", 1)
            self.store.append("members", f"{me.id} ")
        by_name: dict[str, int] = {}
        for rank in ranks or (me.id,):
            info = self._look(rank)
            if info.name in by_name:
                raise RuntimeError(f"RPC worker name {info.name} is not unique. Workers {by_name[info.name]} and {rank} share the same name.")
            by_name[info.name] = rank
        self.entered = True

    def _look(self, rank: int) -> WorkerInfo:
        name, _, address = self.store.get(f"worker/{rank}").decode().partition(" ")
        self.known[rank] = WorkerInfo(name, rank), address
        self.gone.discard(rank)
        return self.known[rank][0]

    def _members(self) -> None:
        """Look who has joined or left since, where workers come and go."""
        if not self.is_static_group:
            here = {int(r) for r in self.store.get("members").split() if self.store.check([f"worker/{int(r)}"])}
            for rank in here - set(self.known):
                self._look(rank)
            for rank in set(self.known) - here:
                del self.known[rank]

    def get_worker_info(self, worker: str | int | None = None) -> WorkerInfo:
        """The worker of a name or number; RuntimeError where there is none."""
        if worker is None:
            return self.info
        if not isinstance(worker, (str, int)):
            raise TypeError(f"get_worker_info(): incompatible function arguments: {worker!r}")
        kind = "name" if isinstance(worker, str) else "id"
        for look_again in (False, True):
            if look_again:
                self._members()
            for info, _ in list(self.known.values()):
                if worker == getattr(info, kind):
                    return info
        raise RuntimeError(f"name:{self.info.name},rank:{self.info.id} could not find destination {kind} {worker}")

    def get_worker_infos(self) -> list[WorkerInfo]:
        self._members()
        return [self.known[rank][0] for rank in sorted(self.known)]

    def _get_backend_options(self) -> TensorPipeRpcBackendOptions:
        return self.options

    def _get_device_map(self, worker: WorkerInfo) -> _DeviceMap:
        return self.options.device_maps.get(worker.name, {})

    def get_debug_info(self) -> dict[str, str]:
        with self.changed:
            asked, serving = len(self.asked), self.serving
        return {"agent.server_active_async_calls": "0", "agent.client_active_calls": str(asked), "agent.server_active_calls": str(serving),
                "agent.num_idle_threads": str(self.pool.size - self.pool.threads + self.pool.idle), "agent.thread_pool_size": str(self.pool.size)}

    # requests to others

    def request(self, to: int, what: str, obj: Any, timeout: float = UNSET_RPC_TIMEOUT, *, raised: Callable[[Failure], Exception] = Failure.as_call,
                pickler: Any = _internal_rpc_pickler, counts: bool = True, tracked: bool = False, note: Any = None) -> Future:
        """The future of worker `to`'s answer. It fails after `timeout` seconds (0: never; -1: the agent's own), and where the worker is gone.

        `tracked`: gradients flow through it, if this thread is in a context of distributed autograd. `note`: plain facts beside `obj`.
        """
        data, tensors = pickler.serialize(obj)
        sent = _context.sent(tensors, to) if tracked else None
        if to not in self.known:
            self.get_worker_info(to)
        info, address = self.known[to]
        parts = packed(Message(what, data, tensors, sent, note), mapped(self.options.device_maps, info.name, "Request"))
        seconds = self.timeout if timeout == UNSET_RPC_TIMEOUT else timeout
        ends = time.monotonic() + seconds if seconds != 0 else math.inf
        future = Future()
        number = next(self.numbers)
        with self.changed:
            if self.closed:
                raise RuntimeError("RPC agent is shut down")
            self.asked[number] = _Asked(future, to, seconds, ends, raised, counts)
            self.begun += counts
            if ends < self.wakes:
                if self.wakes == math.inf:
                    threading.Thread(target=self._watch, daemon=True, name="torchlike rpc deadlines").start()
                self.wakes = ends
                self.timer.notify_all()
        try:
            if to in self.gone:
                raise DistNetworkError("it is gone")
            if to == self.info.id:
                self._arrived(None, number, REQUEST, [bytearray(p) for p in parts])
            else:
                self.wire.to(to, address).send(number, REQUEST, parts)
        except DistNetworkError as error:
            self._settle(number, None, RuntimeError(f"RPC to {info} failed: {error}"))
        return future

    def _watch(self) -> None:
        """Fail requests whose time is over; ends when none has a deadline."""
        while True:
            with self.timer:
                late = min(self.asked, key=lambda number: self.asked[number].ends, default=None)
                self.wakes = math.inf if late is None else self.asked[late].ends
                if self.closed or self.wakes == math.inf:
                    return
                left, seconds = self.wakes - time.monotonic(), self.asked[late].seconds
                if left > 0:
                    self.timer.wait(left)
                    continue
            self._settle(late, None, RuntimeError(TIMED_OUT.format(round(seconds * 1000))))

    def _settle(self, number: int, value: Any, error: Exception | None) -> None:
        """A request's answer, or what went wrong. Who waits for it goes on at once; callbacks run in threads of their own."""
        with self.changed:
            asked = self.asked.pop(number, None)
            self.changed.notify_all()
            if asked is None:  # it came too late
                return
            callbacks = asked.future._settle(value, error)
            if callbacks:
                self.serving += 1
        if callbacks:
            def run() -> None:
                for callback in callbacks:
                    callback()
                self._served()
            self.callbacks.run(run)

    def _answered(self, number: int, kind: int, parts: list[Part]) -> None:
        asked = self.asked.get(number)
        if asked is None:
            return
        try:
            message = unpacked(parts)
            _context.arrived(message.tensors, message.tracked, asked.to)
            value = message.load()
        except Exception as error:
            self._settle(number, None, error)
        else:
            if kind == FAILURE:
                self._settle(number, None, asked.raised(value))
            else:
                self._settle(number, value, None)

    # requests of others

    def _arrived(self, connection: Connection | None, number: int, kind: int, parts: list[Part]) -> None:
        """A frame; `connection` is None for one that this worker sent to itself."""
        if kind != REQUEST:
            self._answered(number, kind, parts)
            return
        message = unpacked(parts)
        request = _Request(connection, number, message, message.what != "gather")
        with self.changed:
            self.serving += request.counts
            self.meeting[message.note] += not request.counts
        pool = self.pool if message.what in self.waiting else self.system
        pool.run(lambda: self._serve(request))

    def _serve(self, request: _Request) -> None:
        source, message = self.info.id if request.connection is None else request.connection.peer, request.message
        try:
            with _context.within(message.tracked):
                _context.arrived(message.tensors, message.tracked, source)
                answer = self.handlers[message.what](source, message)
        except Exception as error:
            answer = failure_of(error)
        if isinstance(answer, Future):
            def later() -> None:
                error = answer._error
                self._reply(request, source, answer._value if error is None else failure_of(error))
            answer._when_done(later)
        else:
            self._reply(request, source, answer)

    def _reply(self, request: _Request, to: int, answer: Any) -> None:
        kind = FAILURE if isinstance(answer, Failure) else ANSWER
        try:
            try:
                parts = self._packed(to, answer, request.message.tracked)
            except Exception as error:  # what cannot be pickled
                kind, parts = FAILURE, self._packed(to, Failure(answer.text if kind == FAILURE else str(error)), None)
            if request.connection is None:
                self._answered(request.number, kind, [bytearray(p) for p in parts])
            else:
                with contextlib.suppress(DistNetworkError):  # nobody waits any more
                    request.connection.send(request.number, kind, parts)
        finally:
            self._served(request)

    def _packed(self, to: int, answer: Any, tracked: _context.Tracked | None) -> list[Part]:
        data, tensors = _internal_rpc_pickler.serialize(answer)
        name = self.known[to][0].name if to in self.known else ""
        made = None if tracked is None else _context.sent(tensors, to, tracked.context)
        return packed(Message("", data, tensors, made), mapped(self.reverse_maps, name, "Response"))

    def _served(self, request: _Request | None = None) -> None:
        """One thing less to wait for: a request is answered, or (None) callbacks have run."""
        with self.changed:
            if request is None or request.counts:
                self.serving -= 1
            else:
                self.meeting[request.message.note] -= 1
            self.changed.notify_all()

    def _lost(self, worker: int, asked: bool) -> None:
        with self.changed:
            if self.closed:
                return
            self.gone.add(worker)
            numbers = [n for n, a in self.asked.items() if a.to == worker] if asked else []
            waiting = [f for _, futures in self.gathered.values() for f in futures.values() if not f.done()]
        for number in numbers:
            self._settle(number, None, RuntimeError(f"the connection to worker {worker} ended before it answered"))
        for future in waiting:
            with contextlib.suppress(RuntimeError):  # completed meanwhile
                future.set_exception(RuntimeError(f"worker {worker} is gone"))

    # all together

    def _gather(self, source: int, message: Message) -> Future:
        """At the leader: the answer to each of `members` is what all of them sent under `key`."""
        key, members, obj = message.load()
        with self.changed:
            objects, futures = self.gathered.setdefault(key, ({}, {}))
            objects[source] = obj
            future = futures[source] = Future()
            missing = set(members) - set(objects)
            if not missing:
                del self.gathered[key]
            gone = missing & self.gone
        if gone:
            future.set_exception(RuntimeError(f"worker {min(gone)} is gone"))
        for member in () if missing else sorted(futures, key=self.info.id.__eq__):  # this worker last: it may be the end of it
            with contextlib.suppress(RuntimeError):  # failed already
                futures[member].set_result(objects)
        return future

    def gather(self, key: str, members: Collection[int], obj: Any, timeout: float = 0, leader: int | None = None) -> dict[int, Any]:
        """{number: what that worker gave}, of all members, each of which calls this with one `key`."""
        leader = min(members) if leader is None else leader
        found = self.request(leader, "gather", (key, members, obj), timeout, counts=False, note=key).wait()
        with self.changed:  # the others' answers are sent before this worker may go
            self.changed.wait_for(lambda: not self.meeting[key], _PATIENCE)
            del self.meeting[key]
        return found

    def join(self, timeout: float = 0) -> None:
        """Until no worker has anything under way: two looks at all workers, idle each, between which nobody began a request."""
        end = time.monotonic() + timeout if timeout > 0 else None
        before, members = None, sorted(self.known)
        for look in itertools.count():
            with self.changed:
                while any(a.counts for a in self.asked.values()) or self.serving:
                    if not self.changed.wait(None if end is None else max(0.0, end - time.monotonic())):
                        raise RuntimeError(f"RPC shutdown timed out: requests were under way for more than {timeout} seconds")
                begun = self.begun
            if not self.is_static_group:
                return
            left = 0 if end is None else max(0.001, end - time.monotonic())
            total = sum(self.gather(f"join{look}", members, begun, left).values())
            if total == before:
                return
            before = total

    def shutdown(self) -> None:
        """No more requests: those under way fail."""
        with self.changed:
            self.closed = True
            numbers = list(self.asked)
            self.changed.notify_all()
            self.timer.notify_all()
        for number in numbers:
            self._settle(number, None, RuntimeError("RPC agent was shut down"))
        if self.entered and not self.is_static_group:
            with contextlib.suppress(DistNetworkError, DistStoreError, OSError):
                self.store.delete_key(f"worker/{self.info.id}")
                self.store.delete_key(f"name/{self.info.name}")
        self.wire.close()
        for pool in (self.pool, self.system, self.callbacks):
            pool.close()


current: list[TensorPipeAgent] = []  # this process's agent, once there is one


def agent() -> TensorPipeAgent:
    if not current:
        raise RuntimeError("Current RPC agent is not set! Did you initialize the RPC framework (e.g. by calling `rpc.init_rpc`)?")
    return current[0]
