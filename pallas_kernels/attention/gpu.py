"""Flash attention forward for the GPU (Dao 2023), Pallas-Triton style: one program per block of query rows."""

import jax
import jax.numpy as jnp

from pallas_kernels import _compat, _tune
from pallas_kernels.attention.case import Case, Operands
from pallas_kernels.attention.tiles import Config, Layout, Tile, key_range, padded

# What `benchmarks/gpu.py --tune` tries.
CANDIDATES = (
    Config(64, 64, 4, 3),
    Config(64, 64, 4, 2),
    Config(128, 64, 4, 3),
    Config(128, 64, 8, 2),
    Config(128, 128, 8, 2),
    Config(64, 128, 4, 2),
    Config(64, 32, 4, 3),
    Config(32, 64, 4, 3),
)


def tuning_key(kernel: str, case: Case) -> str:
    flags = [
        name
        for name, on in (
            ("causal", case.causal),
            ("bias", case.bias is not None),
            ("mask", case.mask is not None),
            ("dropout", case.dropout > 0),
        )
        if on
    ]
    sizes = {"T": case.queries, "S": case.keys, "D": max(case.head_size, case.value_size)}
    return _tune.key(kernel, case.dtype, sizes, tuple(flags))


def heuristic(case: Case) -> Config:
    """Starting points from tokamax's published H100 tables; float32 and wide heads get smaller tiles (registers)."""
    width = padded(max(case.head_size, case.value_size))
    if width > 128:
        return Config(32, 32, 4, 2) if case.dtype == "float32" else Config(64, 32, 8, 2)
    if case.dtype == "float32":
        return Config(64, 32, 4, 2)
    return Config(64, 64, 4, 3)


def forward(case: Case, operands: Operands) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Output, row maximum and row sum, as `reference.attend` gives them."""
    config = _tune.pick("attention_forward", tuning_key("attention_forward", case), Config, lambda: heuristic(case))
    bq, bk = config.block_q, config.block_k
    layout = Layout(case, rows=(bq, 0), cols=(bk, None))
    arrays, blocks = layout.inputs(operands)
    names = list(arrays)

    def body(pid, *refs):
        named = dict(zip(names, refs, strict=False))
        out_ref, top_ref, total_ref = refs[len(names) :]
        first = pid(0) * bq
        row = first + jnp.arange(bq, dtype=jnp.int32)
        tile_at = lambda j: Tile(case, named, row, j * bk + jnp.arange(bk, dtype=jnp.int32), 0, j * bk, None)
        lowest = jnp.finfo(jnp.float32).min  # not -inf: scores of -inf are subtracted from it
        query = tile_at(0).query_rows(named["query"], case.head_size)

        def step(j, carry):
            acc, top, total = carry
            tile = tile_at(j)
            scores = tile.scores(query, tile.key_rows(named["key"], case.head_size))
            new_top = jnp.maximum(top, scores.max(1))
            weight = jnp.exp(scores - new_top[:, None])
            shrink = jnp.exp(top - new_top)
            total = total * shrink + weight.sum(1)
            if case.dropout:
                weight = weight * tile.kept()
            value = tile.key_rows(named["value"], case.value_size)
            update = _compat.dot(weight.astype(value.dtype), value, contract=(1, 0), interpret=case.interpret)
            return acc * shrink[:, None] + update, new_top, total

        start = (
            jnp.zeros((bq, padded(case.value_size)), jnp.float32),
            jnp.full((bq,), lowest, jnp.float32),
            jnp.zeros((bq,), jnp.float32),
        )
        acc, top, total = jax.lax.fori_loop(*key_range(case, named, first, bq, bk), step, start)
        inside = row < case.queries
        out = acc / jnp.maximum(total, 1.0)[:, None]  # a row that sees anything has a sum of at least exp(0)
        columns = jnp.arange(padded(case.value_size)) < case.value_size
        _compat.store(out_ref, out.astype(out_ref.dtype), mask=inside[:, None] & columns[None])
        _compat.store(top_ref, top, mask=inside)
        _compat.store(total_ref, total, mask=inside)

    rows = (case.batch, case.heads, case.queries)
    return tuple(
        _compat.kernel_call(
            body,
            list(arrays.values()),
            name="attention_forward",
            grid=(_compat.cdiv(case.queries, bq), case.batch * case.heads),
            in_blocks=blocks,
            out_blocks=[layout.query_side(padded(case.value_size)), layout.query_side(), layout.query_side()],
            out_shapes=[
                jax.ShapeDtypeStruct((*rows, case.value_size), operands.query.dtype),
                jax.ShapeDtypeStruct(rows, jnp.float32),
                jax.ShapeDtypeStruct(rows, jnp.float32),
            ],
            num_warps=config.num_warps,
            num_stages=config.num_stages,
            interpret=case.interpret,
        )
    )
