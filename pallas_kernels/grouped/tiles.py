"""Cutting sorted rows into tiles that each lie in one group, with shapes that do not depend on the group sizes."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Case:
    rows: int  # M
    inner: int  # K
    columns: int  # N
    groups: int  # G
    dtype: str
    interpret: bool = False


class Tiles(NamedTuple):
    """Per tile: its group (`groups` for rows that belong to none), first row, and the row its group ends at."""

    group: jax.Array
    first: jax.Array
    end: jax.Array


def bounds(sizes: jax.Array, rows: int) -> tuple[jax.Array, jax.Array]:
    """First row and end of each group, int32; groups that would pass the last row end there."""
    ends = jnp.minimum(jnp.cumsum(sizes.astype(jnp.int32)), rows).astype(jnp.int32)
    return jnp.concatenate([jnp.zeros(1, jnp.int32), ends[:-1]]), ends


def cut(sizes: jax.Array, rows: int, block: int) -> Tiles:
    """Tiles of at most `block` rows. Rows past the last group form one more group, whose results are 0."""
    starts, ends = bounds(sizes, rows)
    starts = jnp.concatenate([starts, ends[-1:]])
    ends = jnp.concatenate([ends, jnp.full(1, rows, jnp.int32)])
    tiles_after = jnp.cumsum((ends - starts + block - 1) // block).astype(jnp.int32)
    count = -(-rows // block) + sizes.shape[0] + 1  # each group wastes less than one tile
    number = jnp.arange(count, dtype=jnp.int32)
    group = jnp.minimum(jnp.searchsorted(tiles_after, number, side="right"), sizes.shape[0]).astype(jnp.int32)
    before = jnp.where(group > 0, tiles_after[jnp.maximum(group - 1, 0)], 0)
    first = starts[group] + (number - before) * block
    return Tiles(group, jnp.minimum(first, rows).astype(jnp.int32), ends[group])
