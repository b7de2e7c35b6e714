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
        g = jnp.tanh(x[2] + u[2])
        c = f * c + i * g
        return o * jnp.tanh(c), c, [i, f, g, o]
    if mode == "gru":
        r, z = (jax.nn.sigmoid(x[k] + u[k]) for k in (0, 1))
        n = jnp.tanh(x[2] + r * u[2])
        return (1 - z) * n + z * h, None, [r, z, n, u[2]]
    total = x[0] + u[0]
    return (jnp.tanh(total) if mode == "rnn_tanh" else jnp.maximum(total, 0)), None, []


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
