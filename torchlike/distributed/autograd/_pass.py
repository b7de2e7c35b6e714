"""A backward pass over several workers.

First it is found out which messages take part: from the roots down, each recv function that is met asks the sender to go on from the send
function of that number. Then every worker knows how many gradients each of its nodes will get, and a node runs when they are all in, as in
a backward of one process. (PyTorch leaves out the first round and takes every send function of the context for one that takes part.)
Gradients of leaves add up in the context.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator

from ..._core.grad_mode import mode
from ..._core.graph import AccumulateGrad, Node
from ..._tensor import Tensor
from ...autograd.engine import _add, _after, _filled, _node_hooks, _plus, _run_node, _tasks, _tensor_hooks
from ...futures import Future, collect_all
from ._context import _BITS, DistAutogradContext, RecvRpcBackward, begin, forget, here, retrieve

_numbers = itertools.count()


class Pass:
    """This worker's part of one backward pass."""

    def __init__(self, context: DistAutogradContext, number: int, keep: bool) -> None:
        self.context, self.number, self.keep = context, number, keep
        self.lock = threading.RLock()
        self.waiting: dict[Node, int] = {}  # how many gradients each node still gets
        self.grads: dict[Node, list] = {}
        self.left = 0  # send functions that take part, and whose gradients have not come
        self.ran = 0
        self.callbacks: list[Callable[[], None]] = []  # what hooks want done once all nodes have run

    def reach(self, roots: Iterable[Node]) -> list[RecvRpcBackward]:
        """Count the edges below some nodes; the recv functions met for the first time."""
        found, stack = [], []
        with self.lock:
            for root in roots:
                if root not in self.waiting:
                    self.waiting[root] = 0
                    stack.append(root)
            while stack:
                node = stack.pop()
                if node.__class__ is RecvRpcBackward:
                    found.append(node)
                for edge in node.edges:
                    if edge is not None:
                        known = self.waiting.get(edge[0])
                        self.waiting[edge[0]] = 1 if known is None else known + 1
                        if known is None:
                            stack.append(edge[0])
        return found

    def run(self, given: list[tuple[Node, int, Tensor | None]]) -> list[Future]:
        """Go on with gradients `(node, result, gradient)`: the futures of what other workers make of those that they get."""
        sent: list[Future] = []
        before, mode.enabled = mode.enabled, False
        outer, mode.walk, mode.callbacks = (mode.walk, mode.callbacks), (self.waiting, None, next(_tasks)), self.callbacks
        try:
            with self.lock:
                for node, out, g in given:
                    if g is not None:
                        _add(self.grads, node, out, g)
                ready = [node for node in dict.fromkeys(node for node, _, _ in given) if not self.waiting[node]]
                while ready:
                    self._node(ready.pop(), ready, sent)
                if self.callbacks and self.ran == len(self.waiting):
                    with self._shown(list(self.context.grads)):
                        for callback in self.callbacks:  # grows: a callback may queue another
                            callback()
        finally:
            mode.enabled = before
            mode.walk, mode.callbacks = outer
        return sent

    @contextlib.contextmanager
    def _shown(self, leaves: list[Tensor]) -> Iterator[None]:
        """Hooks and callbacks find a leaf's gradient of this context in its `.grad`, and what they leave there becomes it."""
        grads, before = self.context.grads, [leaf._grad for leaf in leaves]
        for leaf in leaves:
            leaf._grad = grads.get(leaf)
        try:
            yield
        finally:
            for leaf, own in zip(leaves, before):
                made, leaf._grad = leaf._grad, own
                if made is not None:
                    grads[leaf] = made
                else:
                    grads.pop(leaf, None)

    def _node(self, node: Node, ready: list[Node], sent: list[Future]) -> None:
        self.ran += 1
        mine = self.grads.pop(node, None) or [None] * node.n_outputs
        leaf = isinstance(node, AccumulateGrad)
        if leaf and node.grad_dtype is not None and mine[0] is not None:
            mine = [mine[0].to(node.grad_dtype)]
        if node.hooks is not None:
            mine = _node_hooks(node, _tensor_hooks(node, mine))
        if node.__class__ is RecvRpcBackward:
            sent.append(here.request(node.worker, "gradients", (self.context.number, self.number, node.number, mine)))
            below: list = []
        elif leaf:
            if node.variable is not None:
                self._accumulate(node, node.variable, mine[0])
            below = []
        elif all(g is None for g in mine):
            below = [None] * len(node.edges)
        else:
            below = _run_node(node, mine, False, node.needs)
        if node.hooks is not None and node.hooks.post:
            below = _after(node, below, mine)
        if not self.keep:
            node.release()
        for edge, g in zip(node.edges, below):
            if edge is not None:
                if g is not None:
                    _add(self.grads, edge[0], edge[1], g)
                self.waiting[edge[0]] -= 1
                if not self.waiting[edge[0]]:
                    ready.append(edge[0])

    def _accumulate(self, node: AccumulateGrad, leaf: Tensor, g: Tensor | None) -> None:
        with self.context.lock:
            if g is not None:
                before = self.context.grads.get(leaf)
                self.context.grads[leaf] = g.detach() if before is None else _plus(before, g)
            if node.post_accumulate:
                with self._shown([leaf]):
                    for hook in list(node.post_accumulate.values()):
                        hook(leaf)


def _on_node(error: Exception) -> RuntimeError:
    made = RuntimeError(f"Error on Node {here.worker}: {error}")
    made.__cause__ = error
    return made


def _all(futures: list[Future]) -> Future:
    """The future of None once all are done, and of the first one's error on this node."""
    out = Future()

    def finish(done: Future) -> None:
        error = done._error
        if error is None:
            out.set_result(None)
        else:
            out.set_exception(_on_node(error))
    collect_all(futures).add_done_callback(finish)
    return out


def _ask(found: list[RecvRpcBackward], of: Pass) -> list[Future]:
    """Have the senders count on from the messages of some recv functions."""
    return [here.request(node.worker, "count gradients", (of.context.number, of.number, of.keep, node.number)) for node in found]


def counted(asked: tuple[int, int, bool, int]) -> Future:
    """Handler: message `number` takes part in a pass. The future of its being known to all below."""
    context, number, keep, message = asked
    where = retrieve(context)
    with where.lock:
        of = where.passes.setdefault(number, Pass(where, number, keep))
        send = where.sends[message]
    found = of.reach([send])
    with of.lock:
        of.left += 1
    return _all(_ask(found, of))


def received(given: tuple[int, int, int, list]) -> Future:
    """Handler: the gradients of a message's tensors. The future of all that comes of them."""
    context, number, message, grads = given
    where = retrieve(context)
    of, send = where.passes.get(number), where.sends[message]
    if of is None:
        raise RuntimeError(f"the backward pass {number} is over")  # it failed elsewhere
    with of.lock:
        of.left -= 1
        if not of.left:
            where.passes.pop(number, None)
    with _as_error():
        return _all(of.run([(send, i, g) for i, g in enumerate(grads)]))


def backward(context_id: int, roots: list[Tensor], retain_graph: bool = False) -> None:
    """Gradients of `roots` (scalars), added up, for all leaves of the context, at all workers: get_gradients() has them, `.grad` does not.

    RuntimeError for no roots, for a root that has no graph or is no scalar, for an unknown context, and for what goes wrong anywhere.
    """
    if not isinstance(roots, (list, tuple)) or not all(isinstance(t, Tensor) for t in roots):
        raise TypeError(f"backward(): incompatible function arguments: the roots are a list of Tensors, not {roots!r}")
    where = retrieve(context_id)
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        root._current()
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(" is not a scalar, all roots need to be scalar")
        if root.is_leaf:
            raise RuntimeError(" does not have a valid gradient function.")
    number = (here.worker << _BITS) + next(_numbers)
    with where.lock:
        of = where.passes[number] = Pass(where, number, retain_graph)
    try:
        with _as_error():
            nodes = [(root._edge, root._out, Tensor._of(_filled(root._aval, 1))) for root in roots]
            collect_all(_ask(of.reach([node for node, _, _ in nodes]), of)).wait()
            collect_all(of.run(nodes)).wait()
    finally:
        where.passes.pop(number, None)


@contextlib.contextmanager
def _as_error() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _on_node(error) from error


def get_gradients(context_id: int) -> dict[Tensor, Tensor]:
    """The gradients that backward() made in a context for leaves of this worker."""
    where = retrieve(context_id)
    with where.lock:
        return dict(where.grads)


def serve(worker: int, request: Callable, handlers: dict[str, Callable]) -> None:
    """Distributed autograd of this process, as the worker of that number: how it sends requests, and where its handlers of requests belong."""
    begin(worker, request)
    for what, handler in (("count gradients", counted), ("gradients", received), ("release context", forget)):
        handlers[what] = lambda source, message, handler=handler: handler(message.load())
