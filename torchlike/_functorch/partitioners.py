"""Partitions of a graph that computes a function's results and its gradients: into a forward and a backward graph, and what the one saves for the other."""
from __future__ import annotations

import collections
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from .._tags import Tag
from .._tensor import Tensor
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node

__all__ = ["default_partition", "min_cut_rematerialization_partition"]


def _outputs(graph: Graph) -> list[Any]:
    (given,) = next(node for node in graph.nodes if node.op == "output").args
    return list(given)


def _part(module: GraphModule, inputs: Sequence[Node], outputs: Sequence[Any], name: str) -> GraphModule:
    """The graph that computes some of a graph's values from others."""
    graph, known = Graph(), {}
    for node in inputs:
        made = graph.placeholder(node.name)
        made.meta = dict(node.meta)
        known[node] = made
    for node in module.graph.nodes:
        if node.op in ("call_function", "get_attr") and node not in known and all(x in known for x in node.all_input_nodes):
            known[node] = graph.node_copy(node, known.__getitem__)
    graph.output([known[x] if isinstance(x, Node) else x for x in outputs])
    graph.eliminate_dead_code()
    graph.lint()
    return GraphModule(module, graph, name)


def _from(seeds: Iterable[Node], graph: Graph) -> set[Node]:
    """What depends on some nodes, and they."""
    found = set(seeds)
    for node in graph.nodes:
        if any(x in found for x in node.all_input_nodes):
            found.add(node)
    return found


def _needed(wanted: Iterable[Any]) -> set[Node]:
    """What some nodes depend on, and they."""
    found, left = set(), [x for x in wanted if isinstance(x, Node)]
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found


class _Joint:
    """The graph of both, and which nodes are whose."""

    def __init__(self, module: GraphModule, num_fwd_outputs: int) -> None:
        self.module, graph = module, module.graph
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self.tangents = [node for node in placeholders if str(node.target).startswith("tangents")]
        self.primals = [node for node in placeholders if node not in self.tangents]
        outputs = _outputs(graph)
        self.forward, self.backward = outputs[:num_fwd_outputs], outputs[num_fwd_outputs:]
        self.late = _from(self.tangents, graph)  # what only the backward can compute
        needed = _needed(self.forward)
        self.early = {node for node in graph.nodes if node not in self.late and (node in needed or node.op == "placeholder" or node.meta.get(TAG) == FORWARD)}
        self.wanted = _needed(self.backward)

    def parts(self, saved: list[Node]) -> tuple[GraphModule, GraphModule]:
        """The two graphs."""
        return (_part(self.module, self.primals, [*self.forward, *saved], "forward"),
                _part(self.module, [*saved, *self.tangents], self.backward, "backward"))


TAG, FORWARD = "partitioner_tag", "is_forward"


def default_partition(joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int, **settings: Any) -> tuple[GraphModule, GraphModule]:
    """The first `num_fwd_outputs` results of the joint graph by a forward graph of the inputs `primals_*`, the others by a backward graph of `tangents_*` and of
    what the forward one returns beyond its results: all that the forward computes and the backward reads is saved, whatever its size."""
    joint = _Joint(joint_module, num_fwd_outputs)
    saved = []
    for node in joint_module.graph.nodes:
        if node in joint.early and node in joint.wanted and node.op != "get_attr" and not _tuple(node):
            if node in joint.backward or any(user in joint.wanted and user not in joint.early for user in node.users):
                saved.append(node)
    return joint.parts(saved)


def _tuple(node: Node) -> bool:
    return bool(node.users) and all(user.target is operator.getitem for user in node.users)


_COSTLY = ("mm", "addmm", "bmm", "baddbmm", "convolution", "_scaled_dot_product", "linear", "matmul", "einsum", "_fft", "linalg", "sort", "topk", "_cudnn", "lstm")


def _recomputed(node: Node) -> bool:
    """Whether a node may be computed a second time: what is cheap, and is the same then."""
    if node.op == "get_attr":
        return True
    if node.op != "call_function":
        return False
    name = getattr(node.target, "_opname", getattr(node.target, "__name__", ""))
    return not name.startswith(_COSTLY) and Tag.nondeterministic_seeded not in getattr(node.target, "tags", ())


def _bytes(node: Node) -> float:
    value = node.meta.get("val")
    if isinstance(value, Tensor):
        return max(value.numel(), 1) * value.dtype.itemsize
    return math.inf if _tuple(node) else 1


def min_cut_rematerialization_partition(joint_module: GraphModule, _joint_inputs: Any, compiler: str = "inductor", *, num_fwd_outputs: int,
                                        **settings: Any) -> tuple[GraphModule, GraphModule]:
    """As default_partition, but the fewest bytes are saved from which the backward can compute what it reads: a minimal cut through the forward's graph. Products,
    convolutions, sorting and random numbers are not computed again."""
    joint = _Joint(joint_module, num_fwd_outputs)
    flow: dict[Any, dict[Any, float]] = collections.defaultdict(lambda: collections.defaultdict(float))
    nodes = [node for node in joint_module.graph.nodes if node not in joint.late and node in joint.wanted]
    for node in nodes:
        above = node.args[0] if node.target is operator.getitem else node
        if not _recomputed(above):
            flow["source"][node, 0] = math.inf
        flow[node, 0][node, 1] = math.inf if node.op == "get_attr" else _bytes(node)
        if node.op == "get_attr":
            flow["source"][node, 0] = 0.0
        for user in node.users:
            if user in joint.late and user in joint.wanted:
                flow[node, 1]["sink"] = math.inf
            elif user in joint.wanted and user not in joint.late:
                flow[node, 1][user, 0] = math.inf
        if node in joint.backward:
            flow[node, 1]["sink"] = math.inf
    near = _cut(flow)
    return joint.parts([node for node in nodes if (node, 0) in near and (node, 1) not in near])


def _cut(flow: dict[Any, dict[Any, float]]) -> set[Any]:
    """The side of the source of a minimal cut: by the shortest augmenting paths (Edmonds and Karp 1972)."""
    while True:
        came, left = {"source": None}, collections.deque(["source"])
        while left and "sink" not in came:
            here = left.popleft()
            for there, room in list(flow[here].items()):
                if room > 0 and there not in came:
                    came[there] = here
                    left.append(there)
        if "sink" not in came:
            return set(came)
        path, there = [], "sink"
        while came[there] is not None:
            path.append((came[there], there))
            there = came[there]
        most = min(flow[a][b] for a, b in path)
        if math.isinf(most):
            raise RuntimeError("something that the backward reads can neither be saved nor computed again")
        for a, b in path:
            flow[a][b] -= most
            flow[b][a] += most
