"""Grouped products in plain JAX: one product per tile of rows, so the work does not grow with the number of groups.

`lax.ragged_dot` multiplies every row by every group's matrix on the CPU and on GPUs.
"""

import jax
import jax.numpy as jnp
from jax import lax

from pallas_kernels.grouped.tiles import Case, cut

_BLOCK = 64


def product(case: Case, x: jax.Array, weight: jax.Array, sizes: jax.Array, *, transposed: bool) -> jax.Array:
    """x (M, K) times weight (G, K, N) of each row's group; `transposed`: x (M, N) times its transpose."""
    block = min(_BLOCK, case.rows)
    wide = jnp.promote_types(x.dtype, jnp.float32)
    width = case.inner if transposed else case.columns
    padded = jnp.pad(x, ((0, block), (0, 0)))
    weight = jnp.concatenate([weight, jnp.zeros_like(weight[:1])])

    def step(out, tile):
        group, first, end = tile
        part = _dot(
            lax.dynamic_slice_in_dim(padded, first, block),
            lax.dynamic_index_in_dim(weight, group, keepdims=False),
            (1, 1 if transposed else 0),
            wide,
        )
        inside = (first + jnp.arange(block) < end)[:, None]
        old = lax.dynamic_slice_in_dim(out, first, block)
        return lax.dynamic_update_slice_in_dim(out, jnp.where(inside, part.astype(out.dtype), old), first, 0), None

    out = jnp.zeros((case.rows + block, width), case.dtype)
    return lax.scan(step, out, cut(sizes, case.rows, block))[0][: case.rows]


def outer(case: Case, x: jax.Array, y: jax.Array, sizes: jax.Array) -> jax.Array:
    """(G, K, N): x^T y over the rows of each group, x (M, K), y (M, N)."""
    block = min(_BLOCK, case.rows)
    wide = jnp.promote_types(x.dtype, jnp.float32)
    x, y = (jnp.pad(a, ((0, block), (0, 0))) for a in (x, y))

    def step(total, tile):
        group, first, end = tile
        inside = (first + jnp.arange(block) < end)[:, None]
        rows = jnp.where(inside, lax.dynamic_slice_in_dim(x, first, block), 0)
        others = jnp.where(inside, lax.dynamic_slice_in_dim(y, first, block), 0)
        part = _dot(rows, others, (0, 0), wide)
        return lax.dynamic_update_index_in_dim(total, total[group] + part, group, 0), None

    total = jnp.zeros((case.groups + 1, case.inner, case.columns), wide)
    return lax.scan(step, total, cut(sizes, case.rows, block))[0][: case.groups].astype(case.dtype)


def _dot(a, b, contract, dtype):
    return lax.dot_general(
        a,
        b,
        (((contract[0],), (contract[1],)), ((), ())),
        precision=lax.Precision.HIGHEST,
        preferred_element_type=dtype,
    )
