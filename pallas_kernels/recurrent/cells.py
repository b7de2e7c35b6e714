"""One step of each recurrent cell and its derivative, on gates given one by one: what scan and kernel both run."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
SAVED = {
    "lstm": 4,
    "gru": 4,
    "rnn_tanh": 0,
    "rnn_relu": 0,
}  # arrays per step that the backward pass wants, beside states


@dataclass(frozen=True)
class Case:
    mode: str
    steps: int  # T
    batch: int  # B
    hidden: int  # H
    dtype: str
    lengths: bool
    reverse: bool
    interpret: bool = False

    @property
    def gates(self) -> int:
        return GATES[self.mode]

    @property
    def saved(self) -> int:
        return SAVED[self.mode]

    @property
    def cells(self) -> bool:
        return self.mode == "lstm"


class Operands(NamedTuple):
    """inputs (T, B, G, H): the input's share of every gate, biases included; weight (G, H, H), rows are outputs;
    hidden_bias (H,): GRU's bias inside the reset product; h0, c0 (B, H); lengths (B,) int32."""

    inputs: jax.Array
    weight: jax.Array
    hidden_bias: jax.Array | None
    h0: jax.Array
    c0: jax.Array | None
    lengths: jax.Array | None


def step(mode: str, x: list, u: list, h, c) -> tuple:
    """(h', c', saved) from the input's and the hidden state's share of each gate (Hochreiter & Schmidhuber 1997;
    Cho et al. 2014, in the variant whose reset gate acts after the product)."""
    if mode == "lstm":
        i, f, o = (jax.nn.sigmoid(x[k] + u[k]) for k in (0, 1, 3))
        return combine(mode, [i, f, jnp.tanh(x[2] + u[2]), o], h, c)
    if mode == "gru":
        r, z = (jax.nn.sigmoid(x[k] + u[k]) for k in (0, 1))
        return combine(mode, [r, z, jnp.tanh(x[2] + r * u[2]), u[2]], h, c)
    total = x[0] + u[0]
    return (jnp.tanh(total) if mode == "rnn_tanh" else jnp.maximum(total, 0)), None, []


def combine(mode: str, gates: list, h, c) -> tuple:
    """(h', c', gates) from activated gates: i, f, g, o, or r, z, n and the product inside the candidate."""
    if mode == "lstm":
        i, f, g, o = gates
        c = f * c + i * g
        return o * jnp.tanh(c), c, gates
    _, z, n, _ = gates
    return (1 - z) * n + z * h, None, gates


def step_backward(mode: str, dh, dc, h_before, h, c_before, c, saved: list) -> tuple:
    """Gradients (x, u, dh passed on beside the product, dc) of one step."""
    if mode == "lstm":
        i, f, g, o = saved
        t = jnp.tanh(c)
        dc = dc + dh * o * (1 - t * t)
        gates = [dc * g * i * (1 - i), dc * c_before * f * (1 - f), dc * i * (1 - g * g), dh * t * o * (1 - o)]
        return gates, gates, jnp.zeros_like(dh), dc * f
    if mode == "gru":
        r, z, n, v = saved
        dn = dh * (1 - z) * (1 - n * n)
        dz = dh * (h_before - n) * z * (1 - z)
        dr = dn * v * r * (1 - r)
        return [dr, dz, dn], [dr, dz, dn * r], dh * z, None
    d = dh * ((1 - h * h) if mode == "rnn_tanh" else (h > 0))
    return [d], [d], jnp.zeros_like(dh), None
