"""Two recurrent nodes that read the same sequence from its two ends: one bidirectional node."""
from __future__ import annotations

from collections import Counter

import numpy as np

from ._graph import Graph, Node, Var


def join_directions(g: Graph, uses: Counter) -> None:
    """Every Concat of the states of two such nodes reads one."""
    for node in list(g.nodes):
        if node.kind == "Concat" and len(node.inputs) == 2 and node.attributes["axis"] == 2:
            pair = [_behind(v, uses) for v in node.inputs]
            if None not in pair and _fit(*pair) and _last_states(g, *pair) is not None:
                _join(g, node, *pair)


def _behind(v: Var, uses: Counter) -> Node | None:
    """The recurrent node whose states, without the dimension of directions, v is."""
    squeeze = v.node
    if squeeze is None or squeeze.kind != "Squeeze" or uses[id(v)] != 1 or uses[id(squeeze.inputs[0])] != 1:
        return None
    node = squeeze.inputs[0].node
    return node if node is not None and node.kind in ("LSTM", "GRU", "RNN") and squeeze.inputs[0] is node.outputs[0] else None


def _fit(a: Node, b: Node) -> bool:
    directions = a.attributes["direction"], b.attributes["direction"]
    return (a.kind == b.kind and directions == ("forward", "reverse") and a.inputs[0] is b.inputs[0] and [v is None for v in a.inputs] == [v is None for v in b.inputs]
            and all(v.constant for n in (a, b) for v in n.inputs[1:4] if v is not None))


def _last_states(g: Graph, a: Node, b: Node) -> list[tuple[Node, int, int]] | None:
    """Where b's last states are joined to a's: (Concat, place, number of the result); None where one is read without the other."""
    found = []
    for k, (x, y) in enumerate(zip(a.outputs[1:], b.outputs[1:]), 1):
        for node in g.nodes:
            places = [i for i, v in enumerate(node.inputs) if v is x]
            if places and (node.kind != "Concat" or node.attributes["axis"] != 0 or node.inputs[places[0] + 1:places[0] + 2] != [y]):
                return None
            found += [(node, i, k) for i in places]
        if sum(v is y for node in g.nodes for v in node.inputs) != sum(k == n for _, _, n in found) or x in g.outputs or y in g.outputs:
            return None
    return found


def _join(g: Graph, concat: Node, a: Node, b: Node) -> None:
    places, after = _last_states(g, a, b), g.nodes
    at = max(after.index(a), after.index(b)) + 1
    tail, g.nodes = after[at:], after[:at]
    weights = [None if x is None else g.const(np.concatenate([x.value, y.value])) for x, y in zip(a.inputs[1:4], b.inputs[1:4])]
    states = [None if x is None else g.op("Concat", x, y, axis=0) for x, y in zip(a.inputs[4:], b.inputs[4:])]
    attributes = {**a.attributes, "direction": "bidirectional"}
    if "activations" in attributes:
        attributes["activations"] = attributes["activations"] * 2
    made = g.op(a.kind, a.inputs[0], *weights, *states, n=len(a.outputs), **attributes)
    made = made if isinstance(made, tuple) else (made,)
    joined = g.op("Reshape", g.op("Transpose", made[0], perm=[0, 2, 1, 3]), [0, 0, -1])
    for node, i, k in places:
        node.inputs[i:i + 2] = [made[k]]
    out = concat.outputs[0]
    out.node, joined.node.outputs, joined.node.name = joined.node, [out], concat.name
    gone = {id(n) for n in (a, b, concat, *(v.node for v in concat.inputs))}
    g.nodes = [n for n in [*g.nodes, *tail] if id(n) not in gone]
    for node, *_ in places:
        if len(node.inputs) == 1:  # nothing is left to join
            node.kind, node.attributes = "Identity", {}
