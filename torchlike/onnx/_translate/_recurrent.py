"""Recurrent layers: a node per layer and direction."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..._examples.sizes import Dyn
from .._graph import Graph, Var
from ._table import translates


def _gates(g: Graph, w: Var, order: list[int]) -> Var:
    """Weights or biases with their gates in ONNX's order."""
    n = len(order)
    if w.constant:
        return g.const(np.concatenate([np.split(w.value, n)[i] for i in order])[None])
    parts = g.op("Split", w, n=n, axis=0, num_outputs=n)
    return g.op("Unsqueeze", g.op("Concat", *[parts[i] for i in order], axis=0), [0])


def _biases(g: Graph, b_ih: Var | None, b_hh: Var | None, order: list[int]) -> Var | None:
    if b_ih is None:
        return None
    a, b = _gates(g, b_ih, order), _gates(g, b_hh, order)
    return g.const(np.concatenate([a.value, b.value], 1)) if a.constant and b.constant else g.op("Concat", a, b, axis=1)


def _state(g: Graph, h: Var, k: Any) -> Var | None:
    """Row k of the states; None for zeros, which is what ONNX starts from."""
    if h.constant and not h.value.any():
        return None
    if h.node is not None and h.node.kind == "Expand" and h.node.inputs[0].constant and not h.node.inputs[0].value.any():
        return None
    return h if h.shape[0] == 1 and not isinstance(h.shape[0], Dyn) else g.slice(h, 0, k, k + 1)


def _run(g: Graph, kind: str, x: Var, states: list, w_ih: Var, w_hh: Var, b_ih: Any, b_hh: Any, mask: Any, k: Any, reverse: bool, order: list, **more: Any) -> Any:
    if mask is not None:
        return NotImplemented
    states = [_state(g, h, k) for h in states]
    hidden = w_hh.shape[1]
    made = g.op(kind, x, _gates(g, w_ih, order), _gates(g, w_hh, order), _biases(g, b_ih, b_hh, order), None, *states, n=1 + len(states),
                direction="reverse" if reverse else "forward", hidden_size=hidden, **more)
    return g.op("Squeeze", made[0], [1]), *made[1:], *[None] * (len(g.results) - len(made))


@translates("lstm_sequence", called="lstm")
def _lstm(g: Graph, x: Var, h0: Var, c0: Var, w_ih: Var, w_hh: Var, b_ih: Any, b_hh: Any, mask: Any, k: Any, reverse: bool) -> Any:
    return _run(g, "LSTM", x, [h0, c0], w_ih, w_hh, b_ih, b_hh, mask, k, reverse, [0, 3, 1, 2])


@translates("projected_lstm_sequence", called="lstm")
def _projected_lstm(g: Graph, x: Var, h0: Var, c0: Var, w_ih: Var, w_hh: Var, b_ih: Any, b_hh: Any, w_hr: Var, mask: Any, k: Any, reverse: bool) -> Any:
    """Step by step: ONNX's LSTM has no projection."""
    if mask is not None or isinstance(x.shape[0], Dyn):
        return NotImplemented
    turned = [g.op("Transpose", w, perm=[1, 0]) for w in (w_ih, w_hh, w_hr)]
    h, c = (g.op("Squeeze", g.slice(state, 0, k, k + 1), [0]) for state in (h0, c0))
    inputs, rows = g.op("MatMul", x, turned[0]), []
    for bias in (b_ih, b_hh):
        inputs = inputs if bias is None else g.op("Add", inputs, bias)
    for t in reversed(range(x.shape[0])) if reverse else range(x.shape[0]):
        gates = g.op("Add", g.op("Squeeze", g.slice(inputs, 0, t, t + 1), [0]), g.op("MatMul", h, turned[1]))
        i, f, cell, o = g.op("Split", gates, n=4, axis=-1, num_outputs=4)
        c = g.op("Add", g.op("Mul", g.op("Sigmoid", f), c), g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", cell)))
        h = g.op("MatMul", g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", c)), turned[2])
        rows.append(g.op("Unsqueeze", h, [0]))
    return g.op("Concat", *rows[::-1 if reverse else 1], axis=0), g.op("Unsqueeze", h, [0]), g.op("Unsqueeze", c, [0]), None, None


@translates("gru_sequence", called="gru")
def _gru(g: Graph, x: Var, h0: Var, w_ih: Var, w_hh: Var, b_ih: Any, b_hh: Any, mask: Any, k: Any, reverse: bool) -> Any:
    return _run(g, "GRU", x, [h0], w_ih, w_hh, b_ih, b_hh, mask, k, reverse, [1, 0, 2], linear_before_reset=1)


@translates("rnn_sequence", called="rnn")
def _rnn(g: Graph, x: Var, h0: Var, w_ih: Var, w_hh: Var, b_ih: Any, b_hh: Any, mask: Any, k: Any, reverse: bool, relu: bool) -> Any:
    return _run(g, "RNN", x, [h0], w_ih, w_hh, b_ih, b_hh, mask, k, reverse, [0], activations=["Relu" if relu else "Tanh"])
