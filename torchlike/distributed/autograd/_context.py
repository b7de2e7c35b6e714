"""Contexts of distributed autograd: what a worker knows of the forward and backward passes that go through it.

A tensor that requires grad and is sent inside a context leaves a send function here, whose edges lead to where the tensor came from, and
gets a recv function at the receiver, on which the tensor's graph ends there. Both have one number.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..._core.grad_mode import mode
from ..._core.graph import Node
from ..._tensor import Tensor

_BITS = 48  # of a number that are not the worker's
NO_CONTEXT = ("Current thread doesn't have a valid autograd context. Please wrap your code using: `with torch.distributed.autograd.context() as "
              "context_id` to generate a valid context")
NOT_READY = "Need to initialize distributed autograd using torch.distributed.autograd.init()"


class Tracked(NamedTuple):
    """What a message says of gradients: its context, its number, and which of its tensors get a recv function."""

    context: int
    number: int = -1
    places: tuple[int, ...] = ()


class SendRpcBackward(Node):
    """Where a message's tensors came from: its gradients are those that the receiver sends back."""

    __slots__ = ()
    torch_name = "torch::distributed::autograd::SendRpcBackward"

    def __init__(self, tensors: list[Tensor]) -> None:
        edges = []
        for t in tensors:
            t._current()
            edges.append((t._edge, t._out))
        super().__init__(None, edges, (True,) * len(edges), ())

    @property
    def n_outputs(self) -> int:
        return len(self.edges)

    def output_aval(self, i: int):
        node, out = self.edges[i]
        return node.output_aval(out)

    def apply(self, grads: list, create_graph: bool) -> list:
        return grads

    def __repr__(self) -> str:
        return f"<SendRpcBackward object at {hex(id(self))}>"


class RecvRpcBackward(Node):
    """Where the graph of tensors that another worker sent ends here: their gradients go to that worker's send function."""

    __slots__ = ("avals", "number", "worker")
    torch_name = "torch::distributed::autograd::RecvRpcBackward"

    def __init__(self, tensors: list[Tensor], worker: int, number: int) -> None:
        super().__init__(None, (), (), ())
        self.avals, self.worker, self.number = [t._aval for t in tensors], worker, number
        for i, t in enumerate(tensors):
            t._edge, t._out = self, i

    @property
    def n_outputs(self) -> int:
        return len(self.avals)

    def output_aval(self, i: int):
        return self.avals[i]

    def apply(self, grads: list, create_graph: bool) -> list:
        raise RuntimeError("Gradients of tensors that another worker sent are those of torch.distributed.autograd.backward(context_id, roots).")


class DistAutogradContext:
    """This worker's part of a context: its send and recv functions, the gradients of its leaves, and which workers take part."""

    def __init__(self, number: int) -> None:
        self.number, self.lock = number, threading.RLock()
        self.sends: dict[int, SendRpcBackward] = {}
        self.recvs: dict[int, RecvRpcBackward] = {}
        self.grads: dict[Tensor, Tensor] = {}
        self.workers: set[int] = set()
        self.passes: dict[int, Any] = {}

    def _context_id(self) -> int:
        return self.number

    def _send_functions(self) -> dict[int, SendRpcBackward]:
        return dict(self.sends)

    def _recv_functions(self) -> dict[int, RecvRpcBackward]:
        return dict(self.recvs)

    def _known_worker_ids(self) -> set[int]:
        return set(self.workers)


class _Here:
    """The contexts of this process."""

    worker: int | None = None
    request: Callable | None = None  # the agent's
    contexts: dict[int, DistAutogradContext] = {}  # noqa: RUF012
    lock = threading.RLock()
    numbers: Iterator[int] = itertools.count()
    messages: Iterator[int] = itertools.count()


class _Thread(threading.local):
    current: DistAutogradContext | None = None


here, _thread = _Here, _Thread()


def begin(worker: int, request: Callable) -> None:
    """Distributed autograd of the worker of this number, which sends requests so."""
    here.worker, here.request, here.contexts = worker, request, {}
    here.numbers, here.messages = itertools.count(worker << _BITS), itertools.count(worker << _BITS)


def ready() -> None:
    if here.worker is None:
        raise RuntimeError(NOT_READY)


def new() -> DistAutogradContext:
    """A context that this thread works in until it is released; RuntimeError inside of another one."""
    ready()
    if _thread.current is not None:
        raise RuntimeError("Already have an autograd context id for this thread.")
    with here.lock:
        made = _thread.current = _at(next(here.numbers))
    return made


def _at(number: int) -> DistAutogradContext:
    with here.lock:
        found = here.contexts.get(number)
        if found is None:
            found = here.contexts[number] = DistAutogradContext(number)
        return found


def retrieve(number: int) -> DistAutogradContext:
    if not isinstance(number, int):
        raise TypeError(f"incompatible function arguments: a context's number is an int, not {number!r}")
    ready()
    found = here.contexts.get(number)
    if found is None:
        raise RuntimeError(f"Could not find autograd context with id: {number}")
    return found


def current() -> DistAutogradContext:
    ready()
    if _thread.current is None:
        raise RuntimeError(NO_CONTEXT)
    return _thread.current


def release(number: int) -> None:
    """Forget a context, here and at the workers that took part."""
    retrieve(number)
    if _thread.current is not None and _thread.current.number == number:
        _thread.current = None
    forget(number)


def forget(number: int) -> None:
    with here.lock:
        found = here.contexts.pop(number, None)
    for worker in () if found is None else found.workers - {here.worker}:
        with contextlib.suppress(RuntimeError):  # it is gone, and its contexts with it
            here.request(worker, "release context", number)


@contextlib.contextmanager
def within(tracked: Tracked | None) -> Iterator[None]:
    """In the context of a message, if it has one."""
    before = _thread.current
    _thread.current = None if tracked is None or here.worker is None else _at(tracked.context)
    try:
        yield
    finally:
        _thread.current = before


def sent(tensors: list[Tensor], to: int, context: int | None = None) -> Tracked | None:
    """What a message with these tensors says of gradients: None outside of contexts. `context`: of an answer, that of its request."""
    where = _thread.current if context is None else here.contexts.get(context)
    if where is None:
        return None
    places = tuple(i for i, t in enumerate(tensors) if t.requires_grad) if mode.enabled else ()
    number = next(here.messages)
    with where.lock:
        where.workers.add(to)
        if places:
            where.sends[number] = SendRpcBackward([tensors[i] for i in places])
    return Tracked(where.number, number, places)


def arrived(tensors: list[Tensor], tracked: Tracked | None, source: int) -> None:
    """Tensors that came in a message get its recv function."""
    if tracked is None or here.worker is None:
        return
    where = here.contexts.get(tracked.context)
    if where is None:  # released meanwhile
        return
    with where.lock:
        where.workers.add(source)
        if tracked.places:
            mine = [tensors[i] for i in tracked.places]
            for t in mine:
                t.requires_grad = False
            where.recvs[tracked.number] = RecvRpcBackward(mine, source, tracked.number)
