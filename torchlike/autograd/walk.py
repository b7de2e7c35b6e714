"""Backward walks planned once: a training loop builds the same graph at every step.

Over a graph of plain operations (no hooks, no custom Functions) the walk is a function of the graph's structure: which
plans its nodes ran, and how they are connected. That structure is the key of a `Walk`, the list of operations that the
backward records. A graph that comes back is recorded from its Walk at once, without visiting the nodes in turn.
"""
from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

from .._core.graph import AccumulateGrad, Node
from .._core.program import Sequence, record_all
from .._core.registry import OPS, Op, View
from .._core.value import Value
from .graph import Packed

MOST_STEPS = 200_000  # in all known walks; about 500 bytes each
UNSEEN = 1 << 12  # walks, as many as which are recorded until those that did not return meanwhile are forgotten
_walks: dict[tuple, Walk] = {}
_older: dict[tuple, Walk] = {}  # those that did not return since the younger ones were begun
_recorded = itertools.count(1)
_sights: set[int] = set()  # hashes of structures seen once: most graphs of changing programs never come back


def structure(roots) -> tuple[tuple, list[Node]] | None:
    """What determines the walk from roots `(node, output index, gradient or None)`, and the nodes in the order that it numbers
    them; None where Python code may take part."""
    numbers: dict[Node, int] = {}
    nodes: list[Node] = []
    parts: list = []
    for node, out, g in roots:
        k = numbers.get(node)
        if k is None:
            k = numbers[node] = len(nodes)
            nodes.append(node)
        parts += (k, out, None if g is None else g._current().aval)
    for node in nodes:  # grows
        plan = node.plan
        if node.hooks is not None:
            return None
        if plan is None:
            if node.__class__ is not AccumulateGrad or node.post_accumulate or node.grad_dtype is not None:
                return None
            parts.append(None)
            continue
        parts += (plan, node.needs)
        for edge in node.edges:
            if edge is None:
                parts.append(None)
            else:
                below, out = edge
                k = numbers.get(below)
                if k is None:  # as above; a call for each edge would cost as much as all the rest
                    k = numbers[below] = len(nodes)
                    nodes.append(below)
                parts += (k, out)
    return tuple(parts), nodes


NOWHERE: tuple[None, int] = None, 0


def adds_up(node: Node, needs: tuple) -> bool:
    """Whether a node's gradient is added to what its input has already, where that has some."""
    plan = node.plan
    return plan is not None and plan.op.__class__ is View and needs[0] and node.saved is not None and plan.op.adds(plan)


def sums_of(node: Node, grads_of: Callable[[Node], list | None]) -> tuple[list | None, int]:
    """Where a node's gradient is to be added: the gradients of the node that made its input and which of them; None where that has none yet."""
    below, out = node.edges[0]
    found = grads_of(below)
    return (found, out) if found is not None and found[out] is not None else NOWHERE


class Walk(Sequence):
    """The operations of one backward, given the roots' gradients and then what the nodes that run had saved.

    order    the numbers of the nodes that run
    leaves   the numbers of the AccumulateGrads that get the kept results
    """

    __slots__ = ("order", "leaves", "n_given")

    def __init__(self, roots, nodes: list[Node]):
        self.steps, self.kept, self.order, self.leaves = [], [], [], []
        self.n_results = self.n_given = 0
        numbers = {node: k for k, node in enumerate(nodes)}
        waiting = Counter(numbers[edge[0]] for node in nodes for edge in node.edges if edge is not None)
        grads: list[list | None] = [None] * len(nodes)

        def add(node: Node, out: int, source: int) -> None:
            mine = grads[numbers[node]]
            if mine is None:
                mine = grads[numbers[node]] = [None] * node.n_outputs
            mine[out] = source if mine[out] is None else self._record(OPS["add"], (), (mine[out], source))
        for node, out, g in roots:
            add(node, out, self._give() if g is not None else self._fill(node.output_aval(out), 1))
        ready = [k for k in dict.fromkeys(numbers[node] for node, _, _ in roots) if not waiting[k]]
        while ready:
            k = ready.pop()
            node, mine = nodes[k], grads[k]
            if node.plan is None:
                if mine is not None:
                    self.leaves.append(k)
                    self.kept.append(mine[0])
                continue
            sums, out = sums_of(node, lambda below: grads[numbers[below]]) if mine is not None and adds_up(node, node.needs) else NOWHERE
            if sums is not None:
                self.order.append(k)
                saved = [self._give() for _ in node.saved]
                sums[out] = self._record(node.plan.op.plus, node.plan.statics, (sums[out], mine[0], *saved))
                mine = None
            below = iter(() if mine is None else self._derive(k, node, mine))
            for edge, need in zip(node.edges, node.needs):
                g = next(below, None) if need else None
                if edge is None:
                    continue
                if g is not None:
                    add(*edge, g)
                k = numbers[edge[0]]
                waiting[k] -= 1
                if not waiting[k]:
                    ready.append(k)

    def _derive(self, k: int, node: Node, grads: list) -> range:
        plan = node.plan
        optional = getattr(plan.op.derivative, "optional", ())
        gs = [None if g is None and i in optional else self._fill(plan.outs[i], 0) if g is None else g for i, g in enumerate(grads)]
        self.order.append(k)
        saved = [self._give() for _ in node.saved]
        first = self._record(plan.op.backward, (plan, node.needs), (*saved, *gs), sum(node.needs))
        return range(first, self.n_results)

    def _give(self) -> int:
        self.n_given += 1
        return -self.n_given

    def _fill(self, a, number: int) -> int:
        return self._record(OPS["constant"], (number, a.shape, a.dtype, a.device), ())

    def _record(self, op: Op, statics: tuple, sources: tuple, n: int = 1) -> int:
        self.steps.append((op, statics, sources))
        self.n_results += n
        return self.n_results - n


def replay(roots, key: tuple, nodes: list[Node], keep_graph: bool) -> list[tuple[AccumulateGrad, Value]] | None:
    """Record the walk from roots, given its structure: the leaves and their gradients, or None where it must be made node by node."""
    walk = _walks.get(key)
    if walk is None and (walk := _older.pop(key, None)) is not None:
        _walks[key] = walk
    if next(_recorded) % UNSEEN == 0:
        _older.clear()
        _older.update(_walks)
        _walks.clear()
    if walk is None:
        sight = hash(key)
        if sight not in _sights or any(node.saved is None for node in nodes if node.plan is not None):
            if len(_sights) > MOST_STEPS:
                _sights.clear()
            _sights.add(sight)
            return None
        if sum(len(w.steps) for w in _walks.values()) > MOST_STEPS:
            _walks.clear()
        walk = _walks[key] = Walk(roots, nodes)
    values = [g._current() for _, _, g in roots if g is not None]
    for k in walk.order:
        saved = nodes[k].saved
        if saved is None or saved.__class__ is Packed:
            return None
        values += saved
    made = record_all(walk, values)
    if made is None:
        return None
    if not keep_graph:
        for k in walk.order:
            nodes[k].release()
    return [(nodes[k], v) for k, v in zip(walk.leaves, made)]
