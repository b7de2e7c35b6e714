"""Flash attention backward for the GPU: one kernel over query blocks (dq, dbias), one over key blocks (dk, dv).

No atomics: every output element is written by one program, so results are the same from run to run. The tile of
probabilities is recomputed from the row maximum and sum; dropout's mask is drawn again.
"""

import jax
import jax.numpy as jnp

from pallas_kernels import _compat, _tune
from pallas_kernels.attention.case import Case, Operands
from pallas_kernels.attention.gpu import tuning_key
from pallas_kernels.attention.tiles import Config, Layout, Tile, key_range, padded, query_range

CANDIDATES = (
    Config(64, 64, 4, 2),
    Config(64, 64, 8, 2),
    Config(32, 64, 4, 3),
    Config(64, 32, 4, 3),
    Config(128, 64, 8, 2),
    Config(64, 128, 8, 2),
    Config(32, 32, 4, 2),
    Config(128, 128, 8, 1),
)


def heuristic(case: Case) -> Config:
    width = padded(max(case.head_size, case.value_size))
    if width > 128:
        return Config(32, 32, 4 if case.dtype == "float32" else 8, 1)
    if case.dtype == "float32":
        return Config(32, 32, 4, 2)
    return Config(64, 64, 4, 2) if width <= 64 else Config(64, 64, 8, 2)


def backward(case: Case, operands: Operands, top, total, delta, grad, *, bias_gradient: bool):
    """Gradients (query, key, value, bias or None), as `reference.attend_backward` gives them.

    The gradient of a bias that differs from row to row is stored in float32 at (B, H, T, S) before it is summed over
    broadcast dimensions: quadratic, like the bias itself. One that is the same for all rows costs (B, H, S).
    """
    by_row = bias_gradient and case.bias[2] > 1
    by_column = bias_gradient and not by_row
    dq, dscores = _queries(case, operands, top, total, delta, grad, by_row)
    dk, dv, dcolumns = _keys(case, operands, top, total, delta, grad, by_column)
    dbias = None
    if bias_gradient:
        full = dscores if by_row else dcolumns[:, :, None]
        axes = [axis for axis in range(4) if case.bias[axis] == 1 and full.shape[axis] > 1]
        dbias = (full.sum(axes, keepdims=True) if axes else full).astype(operands.bias.dtype)
    return dq, dk, dv, dbias


def _weights(case: Case, tile: Tile, query, key, value, top, inverse, delta, grad) -> tuple:
    """Tiles of the probabilities as the values saw them, and of the gradient of the scores."""
    weight = jnp.exp(tile.scores(query, key) - top[:, None]) * inverse[:, None]
    reached = _compat.dot(grad, value, contract=(1, 1), interpret=case.interpret)
    used = weight
    if case.dropout:
        kept = tile.kept()
        reached, used = reached * kept, weight * kept
    return used, weight * (reached - delta[:, None])


def _rows(tile: Tile, refs: dict) -> tuple:
    case = tile.case
    inverse = 1 / jnp.maximum(tile.query_rows(refs["total"], None), 1.0)
    return (
        tile.query_rows(refs["query"], case.head_size),
        tile.query_rows(refs["top"], None),
        inverse,
        tile.query_rows(refs["delta"], None),
        tile.query_rows(refs["grad"], case.value_size),
    )


def _inputs(case: Case, layout: Layout, operands: Operands, top, total, delta, grad) -> tuple[dict, list]:
    arrays, blocks = layout.inputs(operands)
    arrays |= {"top": top, "total": total, "delta": delta, "grad": grad}
    return arrays, [*blocks, *(layout.query_side() for _ in range(3)), layout.query_side(padded(case.value_size))]


def _queries(case: Case, operands: Operands, top, total, delta, grad, save_scores: bool):
    config = _tune.pick("attention_backward", tuning_key("attention_backward", case), Config, lambda: heuristic(case))
    bq, bk = config.block_q, config.block_k
    layout = Layout(case, rows=(bq, 0), cols=(bk, None))
    arrays, blocks = _inputs(case, layout, operands, top, total, delta, grad)
    names = list(arrays)

    def body(pid, *refs):
        named = dict(zip(names, refs, strict=False))
        dq_ref, *dscores_ref = refs[len(names) :]
        first = pid(0) * bq
        row = first + jnp.arange(bq, dtype=jnp.int32)
        tile_at = lambda j: Tile(case, named, row, j * bk + jnp.arange(bk, dtype=jnp.int32), 0, j * bk, None)
        query, top, inverse, delta, grad = _rows(tile_at(0), named)

        def step(j, dq):
            tile = tile_at(j)
            key = tile.key_rows(named["key"], case.head_size)
            value = tile.key_rows(named["value"], case.value_size)
            _, change = _weights(case, tile, query, key, value, top, inverse, delta, grad)
            if save_scores:
                _compat.store(
                    _compat.at(dscores_ref[0], slice(None), _compat.ds(j * bk, bk)),
                    change,
                    mask=tile.row_ok[:, None] & tile.col_ok[None],
                )
            return dq + _compat.dot(change.astype(key.dtype), key, contract=(1, 0), interpret=case.interpret)

        # Saving the scores' gradient visits every block, so that those out of sight are written as 0.
        every = (jnp.int32(0), jnp.int32(_compat.cdiv(case.keys, bk)))
        bounds = every if save_scores else key_range(case, named, first, bq, bk)
        dq = jax.lax.fori_loop(*bounds, step, jnp.zeros((bq, padded(case.head_size)), jnp.float32))
        inside = (row < case.queries)[:, None] & (jnp.arange(padded(case.head_size)) < case.head_size)[None]
        _compat.store(dq_ref, (dq * jnp.float32(case.scale)).astype(dq_ref.dtype), mask=inside)

    shapes = [jax.ShapeDtypeStruct(operands.query.shape, operands.query.dtype)]
    outs = [layout.query_side(padded(case.head_size))]
    if save_scores:
        full = (case.batch, case.heads, case.queries, case.keys)
        shapes.append(jax.ShapeDtypeStruct(full, jnp.float32))
        outs.append(
            _compat.Block(
                (None, None, bq, _compat.round_up(case.keys, bk)),
                lambda i, bh: (bh // case.heads, bh % case.heads, i, 0),
            )
        )
    out = _compat.kernel_call(
        body,
        list(arrays.values()),
        name="attention_backward_queries",
        grid=(_compat.cdiv(case.queries, bq), case.batch * case.heads),
        in_blocks=blocks,
        out_blocks=outs,
        out_shapes=shapes,
        num_warps=config.num_warps,
        num_stages=config.num_stages,
        interpret=case.interpret,
    )
    return out[0], out[1] if save_scores else None


def _keys(case: Case, operands: Operands, top, total, delta, grad, save_columns: bool):
    config = _tune.pick("attention_backward", tuning_key("attention_backward", case), Config, lambda: heuristic(case))
    bq, bk = config.block_q, config.block_k
    layout = Layout(case, rows=(bq, None), cols=(bk, 0), grouped=True)
    arrays, blocks = _inputs(case, layout, operands, top, total, delta, grad)
    names = list(arrays)

    def body(pid, *refs):
        named = dict(zip(names, refs, strict=False))
        dk_ref, dv_ref, *dcolumns_ref = refs[len(names) :]
        first = pid(0) * bk
        col = first + jnp.arange(bk, dtype=jnp.int32)
        tile_at = lambda g, i: Tile(case, named, i * bq + jnp.arange(bq, dtype=jnp.int32), col, i * bq, 0, g)
        key = tile_at(None, 0).key_rows(named["key"], case.head_size)
        value = tile_at(None, 0).key_rows(named["value"], case.value_size)

        def head(g, carry):
            def step(i, carry):
                dk, dv, dcolumns = carry
                tile = tile_at(g, i)
                query, top, inverse, delta, grad = _rows(tile, named)
                used, change = _weights(case, tile, query, key, value, top, inverse, delta, grad)
                dv += _compat.dot(used.astype(grad.dtype), grad, contract=(0, 0), interpret=case.interpret)
                dk += _compat.dot(change.astype(query.dtype), query, contract=(0, 0), interpret=case.interpret)
                return dk, dv, dcolumns + change.sum(0)

            dk, dv, dcolumns = jax.lax.fori_loop(
                *query_range(case, named, first, bq), step, (*carry, jnp.zeros((bk,), jnp.float32))
            )
            if save_columns:
                _compat.store(_compat.at(dcolumns_ref[0], g, slice(None)), dcolumns, mask=col < case.keys)
            return dk, dv

        dk, dv = jax.lax.fori_loop(
            jnp.int32(0),
            jnp.int32(case.group),
            head,
            (
                jnp.zeros((bk, padded(case.head_size)), jnp.float32),
                jnp.zeros((bk, padded(case.value_size)), jnp.float32),
            ),
        )
        inside = lambda size: (col < case.keys)[:, None] & (jnp.arange(padded(size)) < size)[None]
        _compat.store(dk_ref, (dk * jnp.float32(case.scale)).astype(dk_ref.dtype), mask=inside(case.head_size))
        _compat.store(dv_ref, dv.astype(dv_ref.dtype), mask=inside(case.value_size))

    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (operands.key, operands.value)]
    outs = [layout.key_side(padded(case.head_size)), layout.key_side(padded(case.value_size))]
    if save_columns:
        shapes.append(jax.ShapeDtypeStruct((case.batch, case.heads, case.keys), jnp.float32))
        outs.append(
            _compat.Block(
                (None, case.group, bk), lambda j, bk_head: (bk_head // case.key_heads, bk_head % case.key_heads, j)
            )
        )
    out = _compat.kernel_call(
        body,
        list(arrays.values()),
        name="attention_backward_keys",
        grid=(_compat.cdiv(case.keys, bk), case.batch * case.key_heads),
        in_blocks=blocks,
        out_blocks=outs,
        out_shapes=shapes,
        num_warps=config.num_warps,
        num_stages=config.num_stages,
        interpret=case.interpret,
    )
    return out[0], out[1], out[2] if save_columns else None
