"""split_module: a GraphModule in parts, each a GraphModule of its own, and one that calls them."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...nn import Module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg

__all__ = ["Partition", "split_module"]


class Partition:
    """One part: its nodes, what it takes and gives, and the parts that must run before it."""

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, Node] = {}
        self.outputs: dict[str, Node] = {}
        self.dependencies: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (f"name: {self.name},\n nodes: {self.node_names},\n inputs: {list(self.inputs)},\n outputs: {list(self.outputs)},\n "
                f"partitions depended on: {list(self.dependencies)}")


def split_module(m: GraphModule, root_m: Module, split_callback: Callable[[Node], int], qualname_map: dict[str, str] | None = None,
                 keep_original_order: bool | None = False, keep_original_node_name: bool = False,
                 keep_original_input_name: bool = True, *, partition_affix: str | None = None) -> GraphModule:
    """Cut m where split_callback gives nodes different numbers. Inputs and attributes stay outside and are handed on."""
    parts: dict[str, Partition] = {}
    place: dict[Node, Partition] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            name = str(split_callback(node))
            name = f"{partition_affix}_{name}" if partition_affix else name
            part = place[node] = parts.setdefault(name, Partition(name))
            part.node_names.append(node.name)
    for node in m.graph.nodes:
        for x in node.all_input_nodes:
            _cross(x, place.get(x), place.get(node))
    for part in parts.values():
        for node in part.inputs.values():
            made = part.graph.placeholder(node.name if keep_original_input_name else f"arg_{len(part.environment)}", node.type)
            made.meta = node.meta.copy()
            part.environment[node] = made
    for node, part in place.items():
        _copy_node(node, part, root_m, qualname_map, keep_original_node_name)
    return _stitch(m, _sorted(parts))


def _cross(x: Node, source: Partition | None, user: Partition | None) -> None:
    """Note that a part, or what is outside of all, uses a node of another."""
    if source is user:
        return
    if user is not None:
        user.inputs.setdefault(x.name, x)
        if source is not None:
            user.dependencies.setdefault(source.name)
    if source is not None:
        source.outputs.setdefault(x.name, x)


def _copy_node(node: Node, part: Partition, root: Module, names: dict[str, str] | None, keep_name: bool) -> None:
    target = node.target
    if node.op == "call_module":
        target = node.target.replace(".", "_")
        part.targets[target] = root.get_submodule(node.target)
        if names is not None:
            names[f"{part.submod_name}.{target}"] = node.target
    made = part.graph.create_node(node.op, target, map_arg(node.args, part.environment.__getitem__),
                                  dict(map_arg(node.kwargs, part.environment.__getitem__)), node.name if keep_name else None, node.type)
    made.meta = node.meta.copy()
    part.environment[node] = made


def _sorted(parts: dict[str, Partition]) -> list[Partition]:
    """The parts, each after those that it needs; else in the order in which they were met."""
    waiting, done = dict(parts), []
    while waiting:
        ready = next((p for p in waiting.values() if not any(d in waiting for d in p.dependencies)), None)
        if ready is None:
            raise RuntimeError("cycle exists between partitions!")
        done.append(waiting.pop(ready.name))
    return done


def _stitch(m: GraphModule, parts: list[Partition]) -> GraphModule:
    graph, values = Graph(), {}
    targets: dict[str, Any] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            values[node] = graph.node_copy(node)
            if node.op == "get_attr":
                targets[node.target] = _attribute(m, node.target)
    for part in parts:
        results = [part.environment[n] for n in part.outputs.values()]
        part.graph.output(results[0] if len(results) == 1 else tuple(results))
        targets[part.submod_name] = GraphModule(part.targets, part.graph)
        call = graph.call_module(part.submod_name, tuple(values[n] for n in part.inputs.values()))
        if len(results) == 1:
            values[next(iter(part.outputs.values()))] = call
        else:
            for i, n in enumerate(part.outputs.values()):
                values[n] = graph.call_function(operator.getitem, (call, i))
    last = m.graph.output_node()
    graph.output(map_arg(last.args[0], values.__getitem__), last.type)
    return GraphModule(targets, graph)


def _attribute(m: Module, target: str) -> Any:
    for name in target.split("."):
        m = getattr(m, name)
    return m
