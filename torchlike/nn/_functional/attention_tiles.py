"""Attention in XLA on the CPU for long sequences: no (L, S) array in memory, but one tile of the scores of one head after the other.

The tiling of FlashAttention-2 (Dao 2023): forward with a running softmax, backward from each row's greatest score and sum of exponentials. Tiles
that a causal mask hides are left out. The backward makes tiles of (keys, queries), so that no product has to read one of them down its columns.
"""
from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core import processor
from ...ops.cpu_products import swap

LONG = 1 << 20  # scores of a head from which tiles take less time than the whole
LONG_ON_ONE_CORE = {(False, True): LONG, (False, False): 1 << 18, (True, True): 1 << 17, (True, False): 1 << 16}  # by: is causal, needs gradients
EDGE, CAUSAL_EDGE = 512, 256  # rows and columns of a tile; of one core's under a causal mask (several cores share no smaller product)
MULTIPLE = 8  # which these are of


def pays(queries: int, keys: int, causal: bool, trains: bool) -> bool:
    """Whether tiles take less time than all scores at once."""
    scores = queries * keys
    return scores >= LONG or (scores >= LONG_ON_ONE_CORE[causal, trains] and processor.cores() == 1)


class Tiles(NamedTuple):
    """How the scores of a head are cut: `n` tiles of `rows` queries by `m` of `columns` keys, the last ones past the end."""

    queries: int
    keys: int
    rows: int
    columns: int
    causal: bool

    @staticmethod
    def of(queries: int, keys: int, causal: bool) -> Tiles:
        edge = CAUSAL_EDGE if causal and processor.cores() == 1 else EDGE
        return Tiles(queries, keys, _length(queries, edge), _length(keys, edge), causal)

    @property
    def n(self) -> int:
        return -(-self.queries // self.rows)

    @property
    def m(self) -> int:
        return -(-self.keys // self.columns)

    def seen(self) -> np.ndarray:
        """(tile of queries, tile of keys) of those in which some query sees some key."""
        return np.array([(j, i) for j in range(self.n) for i in range(self.m) if not self.causal or i * self.columns < (j + 1) * self.rows], np.int32)

    def of_queries(self, x):
        """(..., queries, size) to (..., n, rows, size)."""
        return _cut(x, self.n, self.rows)

    def of_keys(self, x):
        return _cut(x, self.m, self.columns)

    def hidden(self, j, i):
        """(rows, columns), or one that broadcasts to it: where a query must not see a key whatever the mask says; None: nowhere."""
        row, column = j * self.rows + np.arange(self.rows)[:, None], i * self.columns + np.arange(self.columns)[None]
        after = column > row if self.causal else None
        if self.m * self.columns == self.keys:
            return after
        past = column >= self.keys
        return past if after is None else after | past


def _length(whole: int, edge: int) -> int:
    parts = max(1, math.ceil(whole / edge))
    return math.ceil(whole / parts / MULTIPLE) * MULTIPLE


def _cut(x, count: int, length: int):
    more = count * length - x.shape[-2]
    if more:
        x = jnp.pad(x, ((0, 0),) * (x.ndim - 2) + ((0, more), (0, 0)))
    return x.reshape(*x.shape[:-2], count, length, x.shape[-1])


class Mask:
    """A mask (..., 1 | L, 1 | S) by heads and tiles: True where a query may see a key, or added to the scores."""

    def __init__(self, mask, batch: tuple[int, ...], tiles: Tiles):
        lead = (1,) * (len(batch) + 2 - mask.ndim) + mask.shape
        places = np.arange(math.prod(lead[:-2]), dtype=np.int32).reshape(lead[:-2])
        self.of_head = np.broadcast_to(places, batch).reshape(-1)
        self.shape = places.size, *lead[-2:]
        self.size = tuple(1 if n == 1 else length for n, length in zip(lead[-2:], (tiles.rows, tiles.columns)))
        whole = tuple(1 if n == 1 else count * length for n, count, length in zip(lead[-2:], (tiles.n, tiles.m), (tiles.rows, tiles.columns)))
        self.padded = jnp.pad(mask.reshape(self.shape), ((0, 0), *((0, w - n) for w, n in zip(whole, lead[-2:]))))
        self.adds = mask.dtype != np.bool_

    def start(self, place, j, i) -> tuple:
        zero = jnp.int32(0)
        return place, j * self.size[0] if self.shape[1] > 1 else zero, i * self.size[1] if self.shape[2] > 1 else zero

    def tile(self, place, j, i):
        return lax.dynamic_slice(self.padded, self.start(place, j, i), (1, *self.size))[0]

    def gradient_of(self, tile):
        """The part of the mask's gradient that comes from a tile of the scores' gradients."""
        return tile.sum([d for d, n in enumerate(self.size) if n == 1 and tile.shape[d] > 1], keepdims=True)


def _product(x, y):
    return lax.dot_general(x, y, (((1,), (0,)), ((), ())))


def _put(x, start: tuple, piece):
    return lax.dynamic_update_slice(x, piece[None], start)


def _add(x, start: tuple, piece):
    return _put(x, start, lax.dynamic_slice(x, start, (1, *piece.shape))[0] + piece)


def _first(x, j) -> tuple:
    """Where entry j of x begins."""
    return j, *(jnp.int32(0),) * (x.ndim - 1)


class _Call:
    """What forward and backward have in common: operands by heads, wide, and how the heads are gone through."""

    def __init__(self, q, k, v, mask, scale: float, causal: bool):
        self.batch, self.kind = q.shape[:-2], np.promote_types(q.dtype, np.float32)
        self.tiles = Tiles.of(q.shape[-2], k.shape[-2], causal)
        self.q = self.by_heads(q) * np.asarray(scale, self.kind)
        self.k, self.v = self.by_heads(k), self.by_heads(v)
        self.mask = None if mask is None else Mask(mask, self.batch, self.tiles)
        heads = np.arange(self.q.shape[0], dtype=np.int32)
        shared = heads // max(1, len(heads) // max(1, self.k.shape[0]))
        self.heads = np.stack([heads, shared, heads if self.mask is None else self.mask.of_head], -1)

    def by_heads(self, x):
        return x.astype(self.kind).reshape(-1, *x.shape[-2:])

    def masked(self, scores, place, j, i, turned: bool = False):
        """A tile's scores, -inf where a query must not see a key; `turned`: they are (keys, queries)."""
        turn = swap if turned else lambda x: x
        hidden = self.tiles.hidden(j, i)
        if self.mask is not None:
            of_tile = self.mask.tile(place, j, i)
            if self.mask.adds:
                scores = scores + turn(of_tile.astype(self.kind))
            else:
                hidden = ~of_tile if hidden is None else hidden | ~of_tile
        return scores if hidden is None else jnp.where(turn(hidden), np.asarray(-np.inf, self.kind), scores)


def forward(q, k, v, mask, scale: float, causal: bool) -> list:
    """softmax(q k^T * scale + mask) v, and for each row (..., L) the greatest score and the sum of exp(score - greatest): 0 and 1 where a row sees nothing.

    (..., H, L, E), (..., H / groups, S, E), (..., H / groups, S, Ev); see `attention.scaled_dot_product_attention`.
    """
    call = _Call(q, k, v, mask, scale, causal)
    tiles, lowest = call.tiles, jnp.finfo(call.kind).min
    qs, kts, vs = tiles.of_queries(call.q), swap(tiles.of_keys(call.k)), tiles.of_keys(call.v)

    def head(which):
        h, shared, place = which

        def tile(carry, ji):
            (j, i), (top, total, out) = ji, carry
            scores = call.masked(_product(qs[h, j], kts[shared, i]), place, j, i)
            before = top[j]
            now = jnp.maximum(before, scores.max(-1))
            e, shrunk = jnp.exp(scores - now[:, None]), jnp.exp(before - now)
            return (_put(top, _first(top, j), now), _put(total, _first(total, j), total[j] * shrunk + e.sum(-1)),
                    _put(out, _first(out, j), out[j] * shrunk[:, None] + _product(e, vs[shared, i]))), None
        rows = tiles.n, tiles.rows
        start = jnp.full(rows, lowest, call.kind), jnp.zeros(rows, call.kind), jnp.zeros((*rows, v.shape[-1]), call.kind)
        (top, total, out), _ = lax.scan(tile, start, tiles.seen())
        blind = total == 0
        total = jnp.where(blind, np.asarray(1, call.kind), total)
        return (out / total[..., None]).astype(q.dtype), jnp.where(blind, np.asarray(0, call.kind), top), total
    made = lax.map(head, call.heads)
    return [_joined(x, (*call.batch, q.shape[-2])) for x in made]


def backward(g, g_top, q, k, v, mask, out, top, total, scale: float, causal: bool, needs: tuple) -> tuple:
    """Gradients of q, k, v and the mask, None where not needed; `g_top` is that of the greatest scores, as far as they stand for the logarithms of
    all of a row's exponentials: so does a derivative of this derivative ask for them. None where nobody does."""
    call = _Call(q, k, v, mask, scale, causal)
    tiles, flat = call.tiles, call.q.shape[0]
    of_rows = lambda x: call.by_heads(x[..., None])  # noqa: E731
    share = 1 / of_rows(total)
    g = call.by_heads(g)
    delta = (g * call.by_heads(out)).sum(-1, keepdims=True)
    if g_top is not None:
        delta = delta - of_rows(g_top)
    # those of the rows' exponentials, which are not divided by their sums
    gs, deltas = tiles.of_queries(g * share), swap(tiles.of_queries(delta * share))
    tops = swap(tiles.of_queries(of_rows(top)))
    qs, ks, vs = tiles.of_queries(call.q), tiles.of_keys(call.k), tiles.of_keys(call.v)
    qts, kts, gts = map(swap, (qs, ks, gs))

    def head(g_mask, which):
        h, shared, place = which

        def tile(carry, ji):
            (j, i), (gq, gk, gv, gm) = ji, carry
            e = jnp.exp(call.masked(_product(ks[shared, i], qts[h, j]), place, j, i, True) - tops[h, j])
            if needs[2]:
                gv = _add(gv, _first(gv, i), _product(e, gs[h, j]))
            if needs[0] or needs[1] or needs[3]:
                change = e * (_product(vs[shared, i], gts[h, j]) - deltas[h, j])
                if needs[0]:
                    gq = _add(gq, _first(gq, j), _product(kts[shared, i], change))
                if needs[1]:
                    gk = _add(gk, _first(gk, i), _product(change, qs[h, j]))
                if needs[3]:
                    gm = _add(gm, call.mask.start(place, j, i), call.mask.gradient_of(swap(change)))
            return (gq, gk, gv, gm), None
        zeros = lambda x, need: jnp.zeros(x.shape[1:], call.kind) if need else None  # noqa: E731
        start = zeros(qts, needs[0]), zeros(ks, needs[1]), zeros(vs, needs[2]), g_mask
        (gq, gk, gv, g_mask), _ = lax.scan(tile, start, tiles.seen())
        return g_mask, (None if gq is None else swap(gq), gk, gv)
    g_mask = jnp.zeros(call.mask.padded.shape, call.kind) if needs[3] else None
    g_mask, (gq, gk, gv) = lax.scan(head, g_mask, call.heads)

    def of_shared(x, like):
        """The sums over the heads that share a key's."""
        if x is None:
            return None
        x = _joined(x, (flat, like.shape[-2]))
        return x.reshape(-1, flat // max(1, call.k.shape[0]), *x.shape[1:]).sum(1).reshape(like.shape)
    if gq is not None:
        gq = _joined(gq, q.shape[:-1]) * np.asarray(scale, call.kind)
    if g_mask is not None:
        g_mask = g_mask[tuple(slice(n) for n in call.mask.shape)].reshape(mask.shape)
    return gq, of_shared(gk, k), of_shared(gv, v), g_mask


def _joined(x, shape: tuple):
    """(heads, tiles, rows, ...) to (*shape, ...), whose last dimension is rows: what lies past their end is cut off."""
    x = x.reshape(x.shape[0], -1, *x.shape[3:])
    return x[:, :shape[-1]].reshape(*shape, *x.shape[2:])
