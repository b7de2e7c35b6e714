"""Attention in plain JAX, differentiable by JAX itself to any order, forward and reverse.

Queries are taken in chunks of a fixed number of rows. Short problems unroll the chunks, so that under a causal mask
each multiplies only the keys it can see (on one CPU core 1.3 to 3 times quicker than one product over all keys). Long
ones loop over chunks and recompute the probabilities in the backward pass: memory linear in both lengths.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from pallas_kernels import _dispatch, _random
from pallas_kernels.attention.case import Case, Operands

_CHUNK = 128  # query rows; 64 and 256 measured slower on a CPU core at 512 to 1024 rows
_CHUNK_ACCELERATOR = 1024  # enough rows to fill a GPU; not timed
_UNROLL = 8  # stripes written out one after the other, each with the keys it can see
_WHOLE_ELEMENTS = 1 << 22  # scores that are made in one piece where no key can be left out
_KEEP_ELEMENTS = 1 << 24  # probabilities a backward pass may keep (64 MB in float32); loops always recompute


class Rows(NamedTuple):
    """The operands of some query rows. Arrays are cut along the query dimension, or have size 1 there."""

    query: jax.Array  # (B, K, G, R, D)
    first: jax.Array | int  # number of the first row
    bias: jax.Array | None  # (B|1, K|1, G|1, R|1, S)
    mask: jax.Array | None
    segments: jax.Array | None  # (B, R)


def attend(case: Case, operands: Operands) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Output (B, H, T, E), row maximum and row sum (B, H, T) of the softmax.

    Rows that see no key have output 0, sum 0 and the lowest finite number as maximum.
    """
    rows = _all_rows(case, operands)
    cut = partial(_slice_rows, rows)
    step = partial(_attend_rows, case, operands)
    recompute = jax.checkpoint(step, static_argnums=(1,))
    if case.batch * case.heads * case.queries * case.keys > _KEEP_ELEMENTS:
        step = recompute
    chunk = _chunk_rows(case)
    stripe = case.queries
    if case.causal and case.offset is not None:
        stripe = chunk * math.ceil(case.queries / (chunk * _UNROLL))
    parts = []
    for start in range(0, case.queries, stripe):
        stop = min(start + stripe, case.queries)
        seen = _keys_seen(case, stop)
        whole = (stop - start) // chunk if stripe > chunk else 0
        if whole > 1:
            stacked = _stack_rows(rows, start, whole, chunk)
            looped = lax.map(partial(lambda seen, piece: recompute(piece, seen), seen), stacked)
            parts.append(jax.tree.map(_unstack_rows, looped))
            start += whole * chunk
        if start < stop:
            parts.append(step(cut(start, stop), seen))
    out, top, total = (jnp.concatenate(p, axis=3) if len(parts) > 1 else p[0] for p in zip(*parts, strict=True))
    shape = (case.batch, case.heads, case.queries)
    return out.reshape(*shape, case.value_size), top.reshape(shape), total.reshape(shape)


def attend_backward(case: Case, operands: Operands, top, total, delta, grad, *, bias_gradient: bool):
    """Gradients (query, key, value, bias or None) from the residuals of `attend`.

    `delta` (B, H, T) is sum(grad * out) less the gradient of the log-sum-exp. One loop over query chunks.
    """
    rows = _all_rows(case, operands)
    group = (case.batch, case.key_heads, case.group)
    extra = [x.reshape(*group, case.queries, *x.shape[3:]) for x in (top, total, delta, grad)]
    chunk = min(_chunk_rows(case), case.queries)
    key_gradient = jnp.zeros(operands.key.shape, extra[2].dtype)
    value_gradient = jnp.zeros(operands.value.shape, extra[2].dtype)
    pieces = []

    def step(carry, piece):
        part, top, total, delta, grad = piece
        dq, dk, dv, db = _backward_rows(case, operands, part, top, total, delta, grad)
        if not bias_gradient:
            db = None
        else:
            db = db.sum([axis for axis in range(5) if rows.bias.shape[axis] == 1], keepdims=True)
        return (carry[0] + dk, carry[1] + dv), (dq, db)

    carry = (key_gradient, value_gradient)
    whole = case.queries // chunk
    if whole > 1:
        stacked = (_stack_rows(rows, 0, whole, chunk), *(_stack(x, 0, whole, chunk) for x in extra))
        carry, looped = lax.scan(step, carry, stacked)
        pieces.append((looped[0], looped[1]))
    for start in range(whole * chunk if whole > 1 else 0, case.queries, chunk):
        stop = min(start + chunk, case.queries)
        part = (_slice_rows(rows, start, stop), *(x[:, :, :, start:stop] for x in extra))
        carry, one = step(carry, part)
        pieces.append(jax.tree.map(lambda x: x[None], one))
    dq = jnp.concatenate([_unstack_rows(p[0]) for p in pieces], axis=3).reshape(operands.query.shape)
    db = None
    if bias_gradient:
        db = _bias_gradient(operands.bias, rows.bias.shape[3] != 1, [p[1] for p in pieces])
    return (
        dq.astype(operands.query.dtype),
        carry[0].astype(operands.key.dtype),
        carry[1].astype(operands.value.dtype),
        db,
    )


def logsumexp(top: jax.Array, total: jax.Array) -> jax.Array:
    """log sum exp of the scores; -inf for rows that see no key."""
    return jnp.where(total == 0, -jnp.inf, top + jnp.log(_divisor(total)))


def _divisor(total: jax.Array) -> jax.Array:
    return jnp.where(total == 0, 1, total)


def _chunk_rows(case: Case) -> int:
    """Rows per chunk: halved while a chunk's scores would not fit a few tens of megabytes."""
    skips = case.causal and case.offset is not None
    if not skips and case.batch * case.heads * case.queries * case.keys <= _WHOLE_ELEMENTS:
        return case.queries
    chunk = _CHUNK if _dispatch.device().platform == "cpu" else _CHUNK_ACCELERATOR
    while chunk > 32 and case.batch * case.heads * chunk * case.keys > _KEEP_ELEMENTS:
        chunk //= 2
    return chunk


def _keys_seen(case: Case, stop: int) -> int:
    if not case.causal or case.offset is None:
        return case.keys
    return min(max(stop + case.offset, 1), case.keys)


def _all_rows(case: Case, operands: Operands) -> Rows:
    grouped = lambda x: None if x is None else _group_heads(case, x)
    query = operands.query.reshape(case.batch, case.key_heads, case.group, case.queries, case.head_size)
    return Rows(query, 0, grouped(operands.bias), grouped(operands.mask), operands.query_segments)


def _group_heads(case: Case, x: jax.Array) -> jax.Array:
    if x.shape[1] == 1:
        return x[:, None]
    return x.reshape(x.shape[0], case.key_heads, case.group, *x.shape[2:])


def _slice_rows(rows: Rows, start: int, stop: int) -> Rows:
    cut = lambda x: x if x is None or x.shape[3] == 1 else x[:, :, :, start:stop]
    segments = None if rows.segments is None else rows.segments[:, start:stop]
    return Rows(rows.query[:, :, :, start:stop], start, cut(rows.bias), cut(rows.mask), segments)


def _stack(x: jax.Array, start: int, count: int, chunk: int, axis: int = 3) -> jax.Array:
    piece = lax.slice_in_dim(x, start, start + count * chunk, axis=axis)
    piece = piece.reshape(*x.shape[:axis], count, chunk, *x.shape[axis + 1 :])
    return jnp.moveaxis(piece, axis, 0)


def _stack_rows(rows: Rows, start: int, count: int, chunk: int) -> Rows:
    def spread(x):
        if x is None:
            return None
        if x.shape[3] == 1:
            return jnp.broadcast_to(x[None], (count, *x.shape))
        return _stack(x, start, count, chunk)

    segments = None if rows.segments is None else _stack(rows.segments, start, count, chunk, axis=1)
    first = jnp.arange(start, start + count * chunk, chunk, dtype=jnp.int32)
    return Rows(_stack(rows.query, start, count, chunk), first, spread(rows.bias), spread(rows.mask), segments)


def _unstack_rows(x: jax.Array) -> jax.Array:
    """(n, B, K, G, R, ...) to (B, K, G, n R, ...)."""
    x = jnp.moveaxis(x, 0, 3)
    return x.reshape(*x.shape[:3], x.shape[3] * x.shape[4], *x.shape[5:])


def _product(a: jax.Array, b: jax.Array, contract: tuple[int, int], dtype) -> jax.Array:
    return lax.dot_general(
        a,
        b,
        (((contract[0],), (contract[1],)), ((0,), (0,))),
        precision=lax.Precision.HIGHEST,  # float32 stays float32 on GPU and TPU
        preferred_element_type=dtype,
    )


def _merge(x: jax.Array) -> jax.Array:
    """(B, K, G, R, X) or (B, K, S, X) to (B K, rows, X); heads of a group share their keys, so they are more rows.

    XLA's CPU backend runs products and softmaxes of four and five dimensions up to 3 times slower than of three.
    """
    return x.reshape(x.shape[0] * x.shape[1], -1, x.shape[-1])


def _accumulator(dtype) -> jnp.dtype:
    return jnp.promote_types(dtype, jnp.float32)


def _scores(case: Case, operands: Operands, rows: Rows, key: jax.Array) -> jax.Array:
    """(B, K, G, R, S') masked scores, -inf where a query must not see a key."""
    seen = key.shape[2]
    wide = _accumulator(key.dtype)
    scores = _product(_merge(rows.query), _merge(key), (2, 2), wide) * jnp.asarray(case.scale, wide)
    scores = scores.reshape(*rows.query.shape[:4], seen)
    last = lambda x: x if x.shape[-1] == 1 else x[..., :seen]
    if rows.bias is not None:
        scores = scores + last(rows.bias).astype(wide)
    visible = None if rows.mask is None else last(rows.mask)
    row = rows.first + jnp.arange(rows.query.shape[3], dtype=jnp.int32)
    column = jnp.arange(seen, dtype=jnp.int32)
    if case.causal:
        visible = _both(visible, column <= row[:, None] + operands.offset)
    wider = lambda x: x[:, None, None]
    if rows.segments is not None:
        visible = _both(visible, wider(rows.segments[:, :, None] == operands.key_segments[:, None, :seen]))
    if operands.query_lengths is not None:
        visible = _both(visible, wider(row[None, :, None] < operands.query_lengths[:, None, None]))
    if operands.key_lengths is not None:
        visible = _both(visible, wider(column[None, None] < operands.key_lengths[:, None, None]))
    return scores if visible is None else jnp.where(visible, scores, -jnp.inf)


def _both(a, b):
    return b if a is None else a & b


def _kept(case: Case, operands: Operands, rows: Rows, seen: int) -> jax.Array:
    """Dropout's multiplier: 1 / (1 - rate) or 0."""
    head = jnp.arange(case.batch * case.heads, dtype=jnp.uint32).reshape(case.batch, case.key_heads, case.group, 1)
    row = jnp.arange(rows.query.shape[3], dtype=jnp.uint32) + jnp.asarray(rows.first, jnp.uint32)
    words = _random.row_keys(operands.seed[0], operands.seed[1], head * jnp.uint32(case.queries) + row)
    column = jnp.arange(seen, dtype=jnp.uint32)
    keep = _random.keep(words[0][..., None], words[1][..., None], column, case.dropout)
    return jnp.where(keep, 1 / (1 - case.dropout), 0).astype(_accumulator(case.dtype))


def _attend_rows(case: Case, operands: Operands, rows: Rows, seen: int):
    key, value = operands.key[:, :, :seen], operands.value[:, :, :seen]
    scores = _scores(case, operands, rows, key)
    shape = scores.shape
    scores = _merge(scores)
    top = lax.stop_gradient(scores.max(-1))
    if case.may_be_blind:
        top = jnp.maximum(top, jnp.finfo(top.dtype).min)  # keeps inf - inf out
    weight = jnp.exp(scores - top[..., None])
    total = weight.sum(-1)
    if case.dropout:
        weight = weight * _merge(_kept(case, operands, rows, seen))
    out = _product(weight.astype(value.dtype), _merge(value), (2, 1), scores.dtype)
    out = out / (_divisor(total) if case.may_be_blind else total)[..., None]
    out = out.astype(case.dtype).reshape(*shape[:4], case.value_size)
    return out, top.reshape(shape[:4]), total.reshape(shape[:4])


def _backward_rows(case: Case, operands: Operands, rows: Rows, top, total, delta, grad):
    key, value = operands.key, operands.value
    scores = _scores(case, operands, rows, key)
    weight = jnp.exp(scores - top[..., None]) / _divisor(total)[..., None]
    wide = weight.dtype
    reached = _product(_merge(grad), _merge(value), (2, 2), wide).reshape(weight.shape)
    used = weight
    if case.dropout:
        kept = _kept(case, operands, rows, key.shape[2])
        reached, used = reached * kept, weight * kept
    change = weight * (reached - delta[..., None])
    narrow = _merge(change.astype(key.dtype))
    dq = _product(narrow, _merge(key), (2, 1), wide).reshape(rows.query.shape) * case.scale
    dk = _product(narrow, _merge(rows.query), (1, 1), wide).reshape(key.shape) * case.scale
    dv = _product(_merge(used.astype(grad.dtype)), _merge(grad), (1, 1), wide).reshape(value.shape)
    return dq, dk, dv, change


def _bias_gradient(bias: jax.Array, by_row: bool, pieces: list) -> jax.Array:
    """Join (n, B|1, K|1, G|1, R|1, S|1) pieces in the bias's shape: rows one after the other, or all summed."""
    parts = [_unstack_rows(piece) if by_row else piece.sum(0) for piece in pieces]
    total = jnp.concatenate(parts, axis=3) if by_row else sum(parts)
    return total.reshape(bias.shape).astype(bias.dtype)
