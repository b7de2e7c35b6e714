"""What is done to a finished graph: parts nobody reads are left out, a normalization goes into the convolution before it, two transpositions in a row
are one, and so are the two directions of a recurrent layer."""
from __future__ import annotations

from collections import Counter

import numpy as np

from ._both_ways import join_directions
from ._graph import Graph, Node, Var

_OPTIONAL = frozenset({"LSTM", "GRU", "RNN", "LayerNormalization", "MaxPool", "Dropout"})  # all results but the first may be missing


def prune(g: Graph) -> None:
    """Keep the nodes that the outputs depend on."""
    wanted = {id(v) for v in g.outputs}
    kept = []
    for node in reversed(g.nodes):
        if any(id(v) in wanted for v in node.outputs):
            kept.append(node)
            wanted.update(id(v) for v in node.inputs if v is not None)
    g.nodes = kept[::-1]
    for node in g.nodes:
        while node.kind in _OPTIONAL and len(node.outputs) > 1 and id(node.outputs[-1]) not in wanted:
            node.outputs.pop()


def fuse(g: Graph) -> None:
    """Conv + Add of a bias, Conv + BatchNormalization: one Conv."""
    uses = Counter(id(v) for node in g.nodes for v in node.inputs if v is not None)
    uses.update(id(v) for v in g.outputs)
    join_directions(g, uses)
    for node in list(g.nodes):
        x = node.inputs[0] if node.inputs else None
        before = None if x is None else x.node
        if before is not None and node.kind == before.kind == "Transpose" and uses[id(x)] == 1:
            node.attributes["perm"] = [before.attributes["perm"][d] for d in node.attributes["perm"]]
            node.inputs = before.inputs
            g.nodes.remove(before)
            continue
        if before is None or before.kind not in ("Conv", "ConvTranspose") or uses[id(x)] != 1:
            continue
        if (node.kind == "Add" and _add_bias(before, node)) or (node.kind == "BatchNormalization" and _normalized(g, before, node)):
            before.outputs, before.name = node.outputs[:1], node.name or before.name
            before.outputs[0].node = before
            g.nodes.remove(node)


def _add_bias(conv: Node, add: Node) -> bool:
    b = add.inputs[1]
    if len(conv.inputs) > 2 or b is None or not b.constant or not b.shape:
        return False
    rank = conv.inputs[1].ndim
    places = [d for d, n in enumerate(b.shape) if n != 1]
    channels = conv.inputs[1].shape[0] if conv.kind == "Conv" else conv.inputs[1].shape[1] * conv.attributes["group"]
    if b.ndim not in (rank, rank - 1) or places not in ([], [b.ndim - rank + 1]) or b.value.size != channels:
        return False
    conv.inputs.append(b.origin if b.origin is not None and b.origin.shape == (channels,) else Var(b.name, (channels,), b.dtype, lambda: b.value.reshape(-1)))
    return True


def _normalized(g: Graph, conv: Node, norm: Node) -> bool:
    """(conv - mean) / sqrt(var + eps) * scale + bias, in the weights."""
    constants = [*conv.inputs[1:], *norm.inputs[1:]]
    if norm.attributes.get("training_mode") or not all(v is not None and v.constant for v in constants):
        return False
    if conv.kind == "ConvTranspose" and conv.attributes["group"] != 1:
        return False
    weight = conv.inputs[1]
    scale, bias, mean, var = (v.value for v in norm.inputs[1:])
    factor = scale / np.sqrt(var + np.asarray(norm.attributes["epsilon"], var.dtype))
    along = (-1, *[1] * (weight.ndim - 1)) if conv.kind == "Conv" else (1, -1, *[1] * (weight.ndim - 2))
    old = conv.inputs[2].value if len(conv.inputs) > 2 else 0
    scaled, moved = weight.value * factor.reshape(along), (old - mean) * factor + bias
    name = conv.inputs[2].name if len(conv.inputs) > 2 else f"{weight.name.removesuffix('.weight')}.bias" if weight.name.endswith(".weight") else g.fresh("val")
    kept = [_fused(weight, scaled), _fused(Var(name, moved.shape, weight.dtype), moved)]
    conv.inputs[1:] = kept
    return True


def _fused(old: Var, array: np.ndarray) -> Var:
    array = array.astype(old.dtype.np)
    return Var(old.name, array.shape, old.dtype, lambda: array)
