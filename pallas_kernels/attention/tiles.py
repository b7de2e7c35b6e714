"""What the forward and backward attention kernels share: cutting operands into blocks, and the masked score tile."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pallas_kernels import _compat, _random
from pallas_kernels.attention.case import Case, Operands


@dataclass(frozen=True)
class Config:
    block_q: int
    block_k: int
    num_warps: int
    num_stages: int


def padded(size: int) -> int:
    """Arrays inside a kernel have power-of-2 sizes, and Triton's matrix product wants at least 16."""
    return max(16, _compat.next_power_of_2(size))


def dropout_words(case: Case, seed: jax.Array) -> dict[str, jax.Array]:
    """Two int32 words per query row: kernels read what they would otherwise compute anew for every tile."""
    shape = (case.batch, case.heads, case.queries)
    number = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    words = _random.row_keys(seed[0], seed[1], number)
    return {f"word{k}": jax.lax.bitcast_convert_type(word, jnp.int32) for k, word in enumerate(words)}


@dataclass(frozen=True)
class Layout:
    """Cuts operands for a grid whose axis 1 numbers (batch, head).

    `rows` and `cols` are (block length, program-id axis); axis None means the whole length, rounded up to the block.
    Kernels over key blocks see all query heads of one group at once (`grouped`), the others one query head.
    """

    case: Case
    rows: tuple[int, int | None]
    cols: tuple[int, int | None]
    grouped: bool = False

    def _lengths(self, which: tuple[int, int | None], total: int) -> tuple[int, Callable]:
        block, axis = which
        if axis is None:
            return _compat.round_up(total, block), lambda ids: 0
        return block, lambda ids: ids[axis]

    def _batch_head(self, ids) -> tuple:
        heads = self.case.key_heads if self.grouped else self.case.heads
        return ids[1] // heads, ids[1] % heads

    def query_side(self, *last: int) -> _compat.Block:
        """(B, H, T) or (B, H, T, n): a query head's rows, or those of all heads of the group."""
        length, index = self._lengths(self.rows, self.case.queries)
        tail = tuple(0 for _ in last)
        head = self.case.group if self.grouped else None
        return _compat.Block((None, head, length, *last), lambda *ids: (*self._batch_head(ids), index(ids), *tail))

    def key_side(self, *last: int) -> _compat.Block:
        length, index = self._lengths(self.cols, self.case.keys)
        group = 1 if self.grouped else self.case.group
        tail = tuple(0 for _ in last)

        def blocks(*ids):
            batch, head = self._batch_head(ids)
            return batch, head // group, index(ids), *tail

        return _compat.Block((None, None, length, *last), blocks)

    def scores(self, shape: tuple[int, ...]) -> _compat.Block:
        """Bias or mask of `shape` (B|1, H|1, T|1, S|1): broadcast dimensions stay 1."""
        rows, row_index = self._lengths(self.rows, self.case.queries)
        cols, col_index = self._lengths(self.cols, self.case.keys)
        heads = (self.case.group if shape[1] > 1 else 1) if self.grouped else None

        def blocks(*ids):
            batch, head = self._batch_head(ids)
            return (
                batch if shape[0] > 1 else 0,
                head if shape[1] > 1 else 0,
                row_index(ids) if shape[2] > 1 else 0,
                col_index(ids) if shape[3] > 1 else 0,
            )

        return _compat.Block((None, heads, rows if shape[2] > 1 else 1, cols if shape[3] > 1 else 1), blocks)

    def per_token(self, query: bool) -> _compat.Block:
        """(B, T) or (B, S) segment ids."""
        length, index = self._lengths(*((self.rows, self.case.queries) if query else (self.cols, self.case.keys)))
        return _compat.Block((None, length), lambda *ids: (self._batch_head(ids)[0], index(ids)))

    def per_batch(self) -> _compat.Block:
        return _compat.Block((1,), lambda *ids: (self._batch_head(ids)[0],))

    def inputs(self, operands: Operands) -> tuple[dict[str, jax.Array], list[_compat.Block]]:
        """Present operands by name, with their blocks, in the order the kernel gets its refs."""
        case = self.case
        arrays = {"query": operands.query, "key": operands.key, "value": operands.value}
        blocks = [
            self.query_side(padded(case.head_size)),
            self.key_side(padded(case.head_size)),
            self.key_side(padded(case.value_size)),
        ]
        if case.causal:
            arrays["offset"] = operands.offset.astype(jnp.int32).reshape(1)
            blocks.append(_compat.Block((1,), lambda *ids: (0,)))
        if case.dropout:
            arrays |= dropout_words(case, operands.seed)
            blocks += [self.query_side(), self.query_side()]
        for name in ("bias", "mask"):
            if (array := getattr(operands, name)) is not None:
                arrays[name] = array
                blocks.append(self.scores(array.shape))
        if case.segments:
            arrays |= {"query_segments": operands.query_segments, "key_segments": operands.key_segments}
            blocks += [self.per_token(True), self.per_token(False)]
        for name in ("query_lengths", "key_lengths"):
            if (array := getattr(operands, name)) is not None:
                arrays[name] = array
                blocks.append(self.per_batch())
        return arrays, blocks


@dataclass(frozen=True)
class Tile:
    """One (rows x cols) tile of the score matrix inside a kernel.

    `row`/`col` number the tokens; `row_at`/`col_at` are where they lie in the refs (0 when a ref is the block itself);
    `head` is the index of the query head in grouped refs, None when refs hold one head.
    """

    case: Case
    refs: dict
    row: jax.Array
    col: jax.Array
    row_at: jax.Array | int
    col_at: jax.Array | int
    head: jax.Array | None

    @property
    def row_ok(self) -> jax.Array:
        return self.row < self.case.queries

    @property
    def col_ok(self) -> jax.Array:
        return self.col < self.case.keys

    def _at(self, ref, *index):
        return _compat.at(ref, *(index if self.head is None else (self.head, *index)))

    def query_rows(self, ref, size: int | None) -> jax.Array:
        """Rows of (T,) or (T, size) data of the query side, 0 past either end."""
        rows = _compat.ds(self.row_at, self.row.shape[0])
        if size is None:
            return _compat.load(self._at(ref, rows), mask=self.row_ok, other=0)
        inside = self.row_ok[:, None] & (jnp.arange(padded(size)) < size)[None]
        return _compat.load(self._at(ref, rows, slice(None)), mask=inside, other=0)

    def key_rows(self, ref, size: int) -> jax.Array:
        inside = self.col_ok[:, None] & (jnp.arange(padded(size)) < size)[None]
        return _compat.load(
            _compat.at(ref, _compat.ds(self.col_at, self.col.shape[0]), slice(None)), mask=inside, other=0
        )

    def _score_operand(self, name: str) -> jax.Array:
        ref, shape = self.refs[name], getattr(self.case, name)
        by_row, by_col = shape[2] > 1, shape[3] > 1
        index = (
            _compat.ds(self.row_at, self.row.shape[0]) if by_row else slice(None),
            _compat.ds(self.col_at, self.col.shape[0]) if by_col else slice(None),
        )
        if self.head is not None:
            index = (self.head if shape[1] > 1 else 0, *index)
        row_ok = self.row_ok[:, None] if by_row else None
        col_ok = self.col_ok[None] if by_col else None
        inside = row_ok & col_ok if by_row and by_col else row_ok if by_row else col_ok
        return _compat.load(_compat.at(ref, *index), mask=inside, other=None if inside is None else 0)

    def scores(self, query: jax.Array, key: jax.Array) -> jax.Array:
        """float32 scores, -inf where the row must not see the column."""
        case = self.case
        scores = _compat.dot(query, key, contract=(1, 1), interpret=case.interpret) * jnp.float32(case.scale)
        if case.bias is not None:
            scores = scores + self._score_operand("bias").astype(jnp.float32)
        visible = self.row_ok[:, None] & self.col_ok[None]
        if case.mask is not None:
            visible &= self._score_operand("mask") != 0  # interpret mode hands booleans out as integers
        if case.causal:
            visible &= self.col[None] <= self.row[:, None] + self.refs["offset"][0]
        if case.segments:
            rows = _compat.ds(self.row_at, self.row.shape[0])
            cols = _compat.ds(self.col_at, self.col.shape[0])
            row_id = _compat.load(_compat.at(self.refs["query_segments"], rows), mask=self.row_ok, other=0)
            col_id = _compat.load(_compat.at(self.refs["key_segments"], cols), mask=self.col_ok, other=0)
            visible &= row_id[:, None] == col_id[None]
        if case.query_lengths:
            visible &= (self.row < self.refs["query_lengths"][0])[:, None]
        if case.key_lengths:
            visible &= (self.col < self.refs["key_lengths"][0])[None]
        return jnp.where(visible, scores, -jnp.inf)

    def kept(self) -> jax.Array:
        """Dropout's multiplier, the same for the same (seed, head, row, column) in every kernel."""
        word0, word1 = (
            jax.lax.bitcast_convert_type(self.query_rows(self.refs[name], None), jnp.uint32)[:, None]
            for name in ("word0", "word1")
        )
        keep = _random.keep(word0, word1, self.col[None], self.case.dropout)
        return jnp.where(keep, jnp.float32(1 / (1 - self.case.dropout)), jnp.float32(0))


def key_range(case: Case, refs: dict, first_row, rows: int, block: int) -> tuple:
    """Key blocks [0, stop) that the rows from `first_row` can see."""
    stop = jnp.int32(case.keys)
    if case.causal:
        stop = jnp.minimum(stop, first_row + rows + refs["offset"][0])
    if case.key_lengths:
        stop = jnp.minimum(stop, refs["key_lengths"][0])
    if case.query_lengths:
        stop = jnp.where(first_row < refs["query_lengths"][0], stop, 0)
    return jnp.int32(0), (jnp.maximum(stop, 0) + block - 1) // block


def query_range(case: Case, refs: dict, first_col, block: int) -> tuple:
    """Query blocks [start, stop) that can see the keys from `first_col` on."""
    start, stop = jnp.int32(0), jnp.int32(case.queries)
    if case.causal:
        start = jnp.maximum(first_col - refs["offset"][0], 0)
    if case.query_lengths:
        stop = jnp.minimum(stop, refs["query_lengths"][0])
    if case.key_lengths:
        stop = jnp.where(first_col < refs["key_lengths"][0], stop, 0)
    return start // block, (stop + block - 1) // block
