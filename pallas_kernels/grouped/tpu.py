"""Grouped products with the kernels JAX ships for TPU (megablox)."""

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm as shipped_product
from jax.experimental.pallas.ops.tpu.megablox.gmm import tgmm as shipped_outer

from pallas_kernels.grouped.tiles import Case, bounds

_TILE = 128


def _padded(x: jax.Array) -> jax.Array:
    return jnp.pad(x, ((0, -x.shape[0] % _TILE), (0, 0)))


def product(case: Case, x: jax.Array, weight: jax.Array, sizes: jax.Array, *, transposed: bool) -> jax.Array:
    """As `reference.product`. Rows past the last group are never written by the shipped kernel."""
    arrays = (_padded(x), weight, sizes.astype(jnp.int32))
    with jax.enable_x64(False):  # Mosaic's lowering mixes 32 and 64-bit indices otherwise
        out = shipped_product(*arrays, jnp.float32, transpose_rhs=transposed, interpret=case.interpret)[: case.rows]
    end = bounds(sizes, case.rows)[1][-1]
    return jnp.where((jnp.arange(case.rows) < end)[:, None], out, 0).astype(case.dtype)


def outer(case: Case, x: jax.Array, y: jax.Array, sizes: jax.Array) -> jax.Array:
    """As `reference.outer`. The shipped kernel visits empty groups too, and writes zeros."""
    arrays = (_padded(x).T, _padded(y), sizes.astype(jnp.int32))
    with jax.enable_x64(False):
        return shipped_outer(*arrays, jnp.float32, interpret=case.interpret).astype(case.dtype)
