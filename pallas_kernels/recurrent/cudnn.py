"""cuDNN's LSTM through jax.experimental.rnn, one layer and direction at a time."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import rnn


def lstm(
    x: jax.Array,
    h0: jax.Array,
    c0: jax.Array,
    w_ih: jax.Array,
    w_hh: jax.Array,
    b_ih: jax.Array | None,
    b_hh: jax.Array | None,
    reverse: bool,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """y (T, B, H) and the last h and c (B, H). float32 products stay float32."""
    steps, batch, size = x.shape
    hidden = h0.shape[1]
    zero = jnp.zeros(4 * hidden, x.dtype)
    weights = jnp.concatenate(
        [w_ih.ravel(), w_hh.ravel(), zero if b_ih is None else b_ih, zero if b_hh is None else b_hh]
    )
    if reverse:
        x = x[::-1]
    y, h, c = rnn.lstm(
        jnp.swapaxes(x, 0, 1),
        h0[None],
        c0[None],
        weights,
        jnp.full((batch,), steps, jnp.int32),
        size,
        hidden,
        1,
        0.0,
        False,
        lax.Precision.HIGHEST,
    )
    y = jnp.swapaxes(y, 0, 1)
    return y[::-1] if reverse else y, h[0], c[0]
