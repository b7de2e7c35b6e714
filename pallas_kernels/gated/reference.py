"""Gated linear units in plain JAX."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax

ACTIVATIONS = {
    "silu": jax.nn.silu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
}


@dataclass(frozen=True)
class Case:
    rows: int  # M
    inner: int  # K
    columns: int  # N
    dtype: str
    activation: str
    interpret: bool = False


def gated(case: Case, x: jax.Array, gate: jax.Array, up: jax.Array, gate_bias, up_bias) -> jax.Array:
    """activation(x gate^T + gate_bias) (x up^T + up_bias): x (M, K), gate and up (N, K)."""
    wide = jnp.promote_types(x.dtype, jnp.float32)

    def product(weight, bias):
        out = lax.dot_general(
            x, weight, (((1,), (1,)), ((), ())), precision=lax.Precision.HIGHEST, preferred_element_type=wide
        )
        return out if bias is None else out + bias.astype(wide)

    return (ACTIVATIONS[case.activation](product(gate, gate_bias)) * product(up, up_bias)).astype(case.dtype)
