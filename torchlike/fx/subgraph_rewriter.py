"""replace_pattern: put another subgraph in the place of every one that looks like a pattern."""
from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..nn import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _assign_attr, _get_attr, _has_attr
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters", "ReplacedPatterns"]


class Match(NamedTuple):
    """Where a pattern was found: its last node, and the node that stands for each of the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """As Match, with the nodes that were put there."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Callable | GraphModule, replacement: Callable | GraphModule) -> list[Match]:
    """Replace what computes the same as `pattern`, which is traced as `replacement` is, and recompile."""
    return [Match(r.anchor, r.nodes_map) for r in _replace_pattern(gm, pattern, replacement)]


def replace_pattern_with_filters(gm: GraphModule, pattern: Callable | Graph | GraphModule, replacement: Callable | Graph | GraphModule | None = None,
                                 match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None, ignore_literals: bool = False,
                                 replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
                                 node_name_match: str = "") -> list[ReplacedPatterns]:
    """As replace_pattern, for those matches that every filter takes; the callback may make the replacement for each."""
    return _replace_pattern(gm, pattern, replacement, match_filters, ignore_literals, replacement_callback)


def _graph_of(x: Callable | Graph | GraphModule) -> Graph:
    if isinstance(x, GraphModule):
        return x.graph
    return x if isinstance(x, Graph) else symbolic_trace(x).graph


def _replace_pattern(gm: GraphModule, pattern: Callable | Graph | GraphModule, replacement: Callable | Graph | GraphModule | None = None,
                     match_filters: list[Callable] | None = None, ignore_literals: bool = False,
                     replacement_callback: Callable | None = None) -> list[ReplacedPatterns]:
    pattern_graph, graph = _graph_of(pattern), gm.graph
    matcher = SubgraphMatcher(pattern_graph, match_output=False, match_placeholder=False, remove_overlapping_matches=True,
                              ignore_literals=ignore_literals)
    matches = [m for m in matcher.match(graph) if all(f(m, graph, pattern_graph) for f in match_filters or ())]
    common = _graph_of(replacement) if replacement is not None else None
    if common is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    changed: dict[Node, Node] = {}
    done = []
    for match in matches:
        new = common if common is not None else replacement_callback(match, graph, pattern_graph)
        done.append(_put(match, graph, pattern_graph, new, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return done


def _put(match: InternalMatch, graph: Graph, pattern: Graph, replacement: Graph, changed: dict[Node, Node]) -> ReplacedPatterns:
    """Replace one match. `changed`: what earlier replacements of this call put in the place of nodes."""
    inputs = [n for n in replacement.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}")
    values: dict[Node, Any] = {}
    for mine, theirs in zip(inputs, match.placeholder_nodes):
        while isinstance(theirs, Node) and theirs in changed:
            theirs = changed[theirs]
        values[mine] = theirs
    match.placeholder_nodes = list(values.values())
    wanted = [n for n in pattern.nodes if n.op == "placeholder"]
    match.nodes_map.update(zip(wanted, match.placeholder_nodes))
    with graph.inserting_before(_first_user(match, graph)):
        before = set(values)
        result = graph.graph_copy(replacement, values)
    made = [node for old, node in values.items() if old not in before and isinstance(node, Node)]
    results = result if isinstance(result, (tuple, list)) else (result,)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(f"the pattern returns {len(match.returning_nodes)} values and its replacement {len(results)}")
    for old, new in zip(match.returning_nodes, results):
        old.replace_all_uses_with(new)
        changed[old] = new
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _first_user(match: InternalMatch, graph: Graph) -> Node:
    """Where the replacement goes: before the first node that uses a result of the match and is outside of it."""
    inside = set(match.nodes_map.values()) if len(match.returning_nodes) > 1 else set(match.returning_nodes)
    users = {u for n in match.returning_nodes for u in n.users if u not in inside}
    return min(users) if users else next(iter(reversed(graph.nodes)))


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Give gm the modules and attributes of the replacement that it lacks, and drop what no node reaches."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr") and not _has_attr(gm, node.target):
            if not _has_attr(replacement, node.target):
                raise RuntimeError(f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the referenced '
                                   "attribute does not exist in the replacement GraphModule")
            _assign_attr(copy.deepcopy(_get_attr(replacement, node.target)), gm, node.target)
    gm.graph.lint()
