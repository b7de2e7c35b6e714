"""The flash attention kernel that JAX ships for TPU, fitted to our options by padding and segment ids."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu import flash_attention as shipped

from pallas_kernels.attention.case import Case, Operands

_BLOCK = 128


def attend(case: Case, operands: Operands) -> jax.Array:
    """Output (B, H, T, E). Lengths become segments: hidden queries and keys get ids that nothing else has."""
    tall, wide = -case.queries % _BLOCK, -case.keys % _BLOCK
    rows = lambda x, n: jnp.pad(x, ((0, 0), (0, 0), (0, n), (0, 0)))
    spread = lambda x: jnp.repeat(x, case.group, axis=1) if case.group > 1 else x
    query, key, value = rows(operands.query, tall), rows(spread(operands.key), wide), rows(spread(operands.value), wide)
    bias = operands.bias
    if bias is not None:
        bias = jnp.broadcast_to(bias, (case.batch, case.heads, case.queries, case.keys)).astype(jnp.float32)
        bias = bias / case.scale  # the shipped kernel scales the sum of product and bias
        bias = jnp.pad(bias, ((0, 0), (0, 0), (0, tall), (0, wide)))
    segments = None
    if tall or wide or case.segments or case.query_lengths or case.key_lengths:
        segments = shipped.SegmentIds(
            _segments(operands.query_segments, operands.query_lengths, (case.batch, case.queries), tall, -1),
            _segments(operands.key_segments, operands.key_lengths, (case.batch, case.keys), wide, -2),
        )
    out = _shipped(case.causal, case.scale, query, key, value, bias, segments)
    out = out[:, :, : case.queries]
    if case.segments or case.query_lengths or case.key_lengths:
        # The shipped kernel averages the values for a row that sees nothing.
        visible = segments.q[:, : case.queries, None] == segments.kv[:, None]
        if case.causal:
            visible &= jnp.arange(segments.kv.shape[1]) <= jnp.arange(case.queries)[:, None]
        out = jnp.where(visible.any(-1)[:, None, :, None], out, 0)
    return out


# Mosaic's lowering mixes 32 and 64-bit indices under `jax_enable_x64`: both passes are traced without it.


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _shipped(causal: bool, scale: float, *arrays) -> jax.Array:
    with jax.enable_x64(False):
        return shipped.flash_attention(*arrays, causal=causal, sm_scale=scale)


def _shipped_forward(causal, scale, *arrays):
    *floats, segments = arrays
    with jax.enable_x64(False):
        call = lambda *given: shipped.flash_attention(*given, segments, causal=causal, sm_scale=scale)
        return jax.vjp(call, *floats)


def _shipped_backward(causal, scale, pull, gradient):
    with jax.enable_x64(False):
        return (*pull(gradient), None)


_shipped.defvjp(_shipped_forward, _shipped_backward)


def _segments(ids, lengths, shape: tuple[int, int], extra: int, hidden: int) -> jax.Array:
    """(B, n + extra) int32. Given ids keep their order but move out of the hidden ids' way."""
    ids = jnp.zeros(shape, jnp.int32) if ids is None else ids
    ids = jnp.where(ids < 0, ids - 2, ids)
    if lengths is not None:
        ids = jnp.where(jnp.arange(shape[1]) < lengths[:, None], ids, hidden)
    return jnp.pad(ids, ((0, 0), (0, extra)), constant_values=hidden)
