"""SubgraphMatcher: where one graph occurs in another."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...._aten_schemas import schema_of
from ...._ops import OpOverload
from ...._schemas import Argument
from ...._tensor import Tensor
from ...graph import Graph
from ...node import Node

__all__ = ["SubgraphMatcher", "InternalMatch"]


@dataclass
class InternalMatch:
    """One occurrence: the pattern's last nodes, the node or value for each of the pattern's, and what goes in and out."""

    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Finds a pattern by walking from its last nodes to its inputs."""

    def __init__(self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False, remove_overlapping_matches: bool = True,
                 ignore_literals: bool = False) -> None:
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        self.pattern_anchors = [output] if match_output else [n for n in self.pattern_returning_nodes if len(n.users) == 1] or [output]

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The occurrences in `graph`, in order; with overlaps removed, the first of those that share nodes."""
        matches: list[InternalMatch] = []
        candidates = [[n for n in graph.nodes if self._like(anchor, n)] for anchor in self.pattern_anchors]

        def extend(i: int, match: InternalMatch) -> None:
            if i == len(self.pattern_anchors):
                matches.append(match)
                return
            for node in candidates[i]:
                trial = InternalMatch(list(match.anchors), dict(match.nodes_map))
                if self._fits(self.pattern_anchors[i], node, trial):
                    extend(i + 1, trial)
        extend(0, InternalMatch(list(self.pattern_anchors)))
        matches = [self._completed(m) for m in matches if self._is_contained(m.nodes_map)]
        return self._without_overlaps(matches) if self.remove_overlapping_matches else matches

    def _completed(self, match: InternalMatch) -> InternalMatch:
        match.placeholder_nodes = [match.nodes_map[p] for p in self.pattern_placeholder_nodes if p in match.nodes_map]
        match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
        return match

    def _without_overlaps(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        taken: set[Node] = set()
        kept = []
        for match in matches:
            inner = [n for p, n in match.nodes_map.items() if p.op not in ("placeholder", "output")]
            if not any(n in taken for n in inner):
                kept.append(match)
                taken.update(inner)
        return kept

    def _is_contained(self, nodes_map: dict[Node, Node]) -> bool:
        """What is only inside the pattern must not be used outside of the match."""
        found = {n: p for p, n in nodes_map.items() if isinstance(n, Node)}
        for p, n in nodes_map.items():
            if p.op == "placeholder" or p in self.pattern_returning_nodes or not isinstance(n, Node):
                continue
            if any(user not in found for user in n.users):
                return False
        return True

    def _like(self, p: Node, n: Node) -> bool:
        """Whether a node is the same step as one of the pattern's, but for its arguments."""
        if not self.match_placeholder and p.op == "placeholder":
            return True
        if p.op != n.op:
            return False
        if p.op in ("placeholder", "output"):
            return True
        if p.op == "get_attr":
            return p.target.rpartition(".")[2] == n.target.rpartition(".")[2] or (_is_tensor(p) and _is_tensor(n))
        return p.target == n.target

    def _fits(self, p: Node, n: Any, match: InternalMatch) -> bool:
        """Match a node, and what it takes, with one of the pattern's."""
        if p in match.nodes_map:
            return match.nodes_map[p] is n or (not isinstance(n, Node) and match.nodes_map[p] == n)
        if not isinstance(n, Node):
            if p.op != "placeholder":
                return False
            match.nodes_map[p] = n
            return True
        if n in match.nodes_map.values() and p.op != "placeholder":
            return False
        if not self._like(p, n):
            return False
        before = dict(match.nodes_map)
        match.nodes_map[p] = n
        if p.op == "placeholder":
            return True
        wanted, given = _flat(p, n)
        if len(wanted) == len(given) and all(self._argument(a, b, match) for a, b in zip(wanted, given)):
            return True
        match.nodes_map.clear()
        match.nodes_map.update(before)
        return False

    def _argument(self, a: Any, b: Any, match: InternalMatch) -> bool:
        if isinstance(a, Node):
            return self._fits(a, b, match)
        if isinstance(b, Node):
            return False
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return len(a) == len(b) and all(self._argument(x, y, match) for x, y in zip(a, b))
        if isinstance(a, dict) and isinstance(b, dict):
            return a.keys() == b.keys() and all(self._argument(a[k], b[k], match) for k in a)
        return self.ignore_literals or (type(a) is type(b) and a == b)


def _is_tensor(n: Node) -> bool:
    """Whether the attribute that a node reads is a tensor of the graph's module."""
    value: Any = n.graph.owning_module
    for name in n.target.split("."):
        value = getattr(value, name, None)
    return isinstance(value, Tensor)


def _flat(p: Node, n: Node) -> tuple[list, list]:
    """The arguments of two nodes in one order, whether they came by position or by name, or are an operator's defaults."""
    schema = schema_of(p.target) if isinstance(p.target, OpOverload) else None
    if schema is not None:
        return _in_order(p, schema.arguments), _in_order(n, schema.arguments)
    names = list(dict.fromkeys([*p.kwargs, *n.kwargs]))
    missing: Callable[[], object] = object
    return ([*p.args, *(p.kwargs.get(k, missing()) for k in names)], [*n.args, *(n.kwargs.get(k, missing()) for k in names)])


def _in_order(n: Node, parameters: list[Argument]) -> list:
    return [*n.args, *(n.kwargs.get(x.name, _default(x)) for x in parameters[len(n.args):])]


def _default(x: Argument) -> Any:
    """A parameter's default; one number is that of each place of a list of known length."""
    listed = re.fullmatch(r".*\[(\d+)\]\??", x.kind)
    return [x.default] * int(listed[1]) if listed and isinstance(x.default, (int, float)) else x.default
