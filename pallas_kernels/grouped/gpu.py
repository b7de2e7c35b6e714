"""Grouped products for the GPU. Tiles never straddle groups; every output element is written by one program."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pallas_kernels import _compat, _tune
from pallas_kernels.grouped.tiles import Case, bounds, cut


@dataclass(frozen=True)
class Config:
    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int


CANDIDATES = (
    Config(128, 128, 32, 4, 4),
    Config(128, 128, 64, 8, 3),
    Config(64, 128, 64, 4, 4),
    Config(128, 256, 32, 8, 3),
    Config(64, 64, 64, 4, 4),
)


def tuning_key(kernel: str, case: Case) -> str:
    return _tune.key(kernel, case.dtype, {"M": case.rows, "K": case.inner, "N": case.columns, "G": case.groups})


def _config(kernel: str, case: Case) -> Config:
    # tokamax's winner for most shapes on an H100; float32 tiles take twice the room and three products.
    start = Config(64, 64, 32, 4, 3) if case.dtype == "float32" else Config(128, 128, 32, 4, 4)
    return _tune.pick(kernel, tuning_key(kernel, case), Config, lambda: start)


def product(case: Case, x: jax.Array, weight: jax.Array, sizes: jax.Array, *, transposed: bool) -> jax.Array:
    """As `reference.product`."""
    config = _config("grouped_product", case)
    bm, bn, bk = config.block_m, config.block_n, config.block_k
    inner, width = (case.columns, case.inner) if transposed else (case.inner, case.columns)
    tiles = cut(sizes, case.rows, bm)
    steps, padded = _compat.cdiv(inner, bk), _compat.round_up(inner, bk)
    one = _compat.Block((1,), lambda t, j: (t,))
    shape = (case.groups, bn, padded) if transposed else (case.groups, padded, bn)
    weight_block = _compat.Block(shape, lambda t, j: (0, j, 0) if transposed else (0, 0, j))
    out_block = _compat.Block((case.rows, bn), lambda t, j: (0, j))

    def body(pid, group_ref, first_ref, end_ref, x_ref, weight_ref, out_ref):
        group, first, end = group_ref[0], first_ref[0], end_ref[0]
        rows = _compat.ds(first, bm)
        row_ok = first + jnp.arange(bm, dtype=jnp.int32) < end
        column_ok = pid(1) * bn + jnp.arange(bn, dtype=jnp.int32) < width
        here = jnp.minimum(group, case.groups - 1)

        def step(k, total):
            inner_ok = k * bk + jnp.arange(bk, dtype=jnp.int32) < inner
            at = _compat.ds(k * bk, bk)
            a = _compat.load(_compat.at(x_ref, rows, at), mask=row_ok[:, None] & inner_ok[None], other=0)
            index, mask = (
                ((slice(None), at), (column_ok, inner_ok)) if transposed else ((at, slice(None)), (inner_ok, column_ok))
            )
            b = _compat.load(_compat.at(weight_ref, here, *index), mask=mask[0][:, None] & mask[1][None], other=0)
            return total + _compat.dot(a, b, contract=(1, 1 if transposed else 0), interpret=case.interpret)

        # arrays, not numbers: of `where(c, steps, 0)` Pallas would make a number of one bit
        count = jnp.where((group < case.groups) & (first < end), jnp.int32(steps), jnp.int32(0))
        total = jax.lax.fori_loop(jnp.int32(0), count, step, jnp.zeros((bm, bn), jnp.float32))
        _compat.store(
            _compat.at(out_ref, rows, slice(None)), total.astype(out_ref.dtype), mask=row_ok[:, None] & column_ok[None]
        )

    return _compat.kernel_call(
        body,
        [*tiles, x, weight],
        name="grouped_product",
        grid=(tiles.group.shape[0], _compat.cdiv(width, bn)),
        in_blocks=[one, one, one, _compat.Block((case.rows, padded), lambda t, j: (0, 0)), weight_block],
        out_blocks=[out_block],
        out_shapes=[jax.ShapeDtypeStruct((case.rows, width), case.dtype)],
        num_warps=config.num_warps,
        num_stages=config.num_stages,
        interpret=case.interpret,
    )[0]


def outer(case: Case, x: jax.Array, y: jax.Array, sizes: jax.Array) -> jax.Array:
    """As `reference.outer`: a program per group and (K, N) block walks the group's rows."""
    config = _config("grouped_outer", case)
    bm, bn, bk = config.block_k, config.block_n, config.block_m
    starts, ends = bounds(sizes, case.rows)
    one = _compat.Block((1,), lambda g, k, n: (g,))

    def body(pid, start_ref, end_ref, x_ref, y_ref, out_ref):
        start, end = start_ref[0], end_ref[0]
        inner_ok = pid(1) * bk + jnp.arange(bk, dtype=jnp.int32) < case.inner
        column_ok = pid(2) * bn + jnp.arange(bn, dtype=jnp.int32) < case.columns

        def step(i, total):
            first = start + i * bm
            row_ok = (first + jnp.arange(bm, dtype=jnp.int32) < end)[:, None]
            rows = _compat.ds(first, bm)
            a = _compat.load(_compat.at(x_ref, rows, slice(None)), mask=row_ok & inner_ok[None], other=0)
            b = _compat.load(_compat.at(y_ref, rows, slice(None)), mask=row_ok & column_ok[None], other=0)
            return total + _compat.dot(a, b, contract=(0, 0), interpret=case.interpret)

        total = jax.lax.fori_loop(jnp.int32(0), (end - start + bm - 1) // bm, step, jnp.zeros((bk, bn), jnp.float32))
        _compat.store(out_ref, total.astype(out_ref.dtype), mask=inner_ok[:, None] & column_ok[None])

    return _compat.kernel_call(
        body,
        [starts, ends, x, y],
        name="grouped_outer",
        grid=(case.groups, _compat.cdiv(case.inner, bk), _compat.cdiv(case.columns, bn)),
        in_blocks=[
            one,
            one,
            _compat.Block((case.rows, bk), lambda g, k, n: (0, k)),
            _compat.Block((case.rows, bn), lambda g, k, n: (0, n)),
        ],
        out_blocks=[_compat.Block((None, bk, bn), lambda g, k, n: (g, k, n))],
        out_shapes=[jax.ShapeDtypeStruct((case.groups, case.inner, case.columns), case.dtype)],
        num_warps=config.num_warps,
        num_stages=config.num_stages,
        interpret=case.interpret,
    )[0]
