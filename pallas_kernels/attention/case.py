"""What one attention call is: its arrays, and the static facts that implementations are chosen and traced by."""

from dataclasses import dataclass
from typing import NamedTuple

import jax


class Operands(NamedTuple):
    """Arrays of one call in the kernels' layout; absent options are None.

    query (B, H, T, D), key (B, K, S, D), value (B, K, S, E) with H a multiple of K; bias and mask (B|1, H|1, T|1, S|1);
    segment ids (B, T) and (B, S) int32; lengths (B,) int32; offset int32 scalar; seed uint32[2].
    """

    query: jax.Array
    key: jax.Array
    value: jax.Array
    bias: jax.Array | None
    mask: jax.Array | None
    query_segments: jax.Array | None
    key_segments: jax.Array | None
    query_lengths: jax.Array | None
    key_lengths: jax.Array | None
    offset: jax.Array | None
    seed: jax.Array | None


@dataclass(frozen=True)
class Case:
    """Static description. `offset` is the causal offset when it is a Python integer, None when it is an array."""

    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    head_size: int
    value_size: int
    dtype: str
    causal: bool
    offset: int | None
    bias: tuple[int, ...] | None  # shape
    mask: tuple[int, ...] | None  # shape
    segments: bool
    query_lengths: bool
    key_lengths: bool
    dropout: float
    scale: float
    logsumexp: bool  # the caller asked for it
    interpret: bool = False

    @property
    def group(self) -> int:
        return self.heads // self.key_heads

    @property
    def may_be_blind(self) -> bool:
        """Whether a row might see no key."""
        shifted = self.causal and (self.offset is None or self.offset < 0)
        options = (self.bias is not None, self.mask is not None, self.segments, self.query_lengths, self.key_lengths)
        return shifted or any(options)
