"""Layers and what follows them in a graph made one module."""
from __future__ import annotations

from typing import Any

from ....fx.graph import Graph
from ....fx.graph_module import GraphModule
from ....fx.node import Node
from ....nn import functional
from ....nn.modules import activation
from ....nn.modules.module import Module
from ....nn.utils.parametrize import type_before_parametrizations
from ..fuser_method_mappings import DEFAULT, get_fuser_method


def _kind(node: Any, modules: dict[str, Module]) -> Any:
    if node.op == "call_module":
        return type_before_parametrizations(modules[node.target])
    return activation.ReLU if node.op == "call_function" and node.target is functional.relu else None


def _chain(last: Node, modules: dict[str, Module]) -> list[Node]:
    """The longest fused sequence that ends with a node: each but the last has one reader."""
    found: list[Node] = []
    nodes, node = [last], last
    while len(nodes) < 3 and len(node.args) == 1 and isinstance(node.args[0], Node) and len(node.args[0].users) == 1:
        node = node.args[0]
        nodes.insert(0, node)
        if node.op == "call_module" and tuple(_kind(n, modules) for n in nodes) in DEFAULT:
            found = list(nodes)
    return found


def fuse(model: GraphModule, is_qat: bool) -> GraphModule:
    """The graph with each such sequence as the module of its first node. AssertionError where a fusion asks for another mode."""
    modules = dict(model.named_modules())
    chains: dict[Node, list[Node]] = {}  # by each of their nodes
    for node in reversed(model.graph.nodes):
        if node not in chains and node.op in ("call_module", "call_function"):
            chain = _chain(node, modules)
            if chain and not any(n in chains for n in chain):
                chains.update(dict.fromkeys(chain, chain))
    graph, made = Graph(), {}
    for node in model.graph.nodes:
        chain = chains.get(node)
        if chain is None:
            made[node] = graph.node_copy(node, made.__getitem__)
        elif node is chain[-1]:
            first, *_ = chain
            parts = [modules[n.target] if n.op == "call_module" else activation.ReLU().train(modules[first.target].training) for n in chain]
            fused = get_fuser_method(tuple(map(type_before_parametrizations, parts)))(is_qat, *parts)
            model.set_submodule(first.target, fused)
            made[node] = graph.node_copy(first, made.__getitem__)
    return GraphModule(model, graph)


