"""Gated linear units for the GPU: two accumulators over one reading of x, the activation before the only store."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pallas_kernels import _compat, _tune
from pallas_kernels.gated.reference import Case


@dataclass(frozen=True)
class Config:
    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int


CANDIDATES = (
    Config(64, 64, 32, 4, 3),
    Config(128, 64, 32, 4, 3),
    Config(128, 128, 32, 8, 3),
    Config(64, 128, 64, 8, 3),
)


def tuning_key(case: Case) -> str:
    return _tune.key("gated_linear", case.dtype, {"M": case.rows, "K": case.inner, "N": case.columns})


def _erf(x: jax.Array) -> jax.Array:
    """Abramowitz and Stegun 7.1.26, within 1.5e-7: Triton's lowering has no erf."""
    size = jnp.abs(x)
    t = 1 / (1 + 0.3275911 * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    value = 1 - series * jnp.exp(-size * size)
    return jnp.where(x < 0, -value, value)


_ACTIVATIONS = {
    "silu": lambda x: x * jax.nn.sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + _erf(x * 0.7071067811865476)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + jnp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
    "relu": lambda x: jnp.maximum(x, 0.0),
    "sigmoid": jax.nn.sigmoid,
}


def gated(case: Case, x: jax.Array, gate: jax.Array, up: jax.Array, gate_bias, up_bias) -> jax.Array:
    """As `reference.gated`."""
    config = _tune.pick("gated_linear", tuning_key(case), Config, lambda: Config(64, 64, 32, 4, 3))
    bm, bn, bk = config.block_m, config.block_n, config.block_k
    padded = _compat.round_up(case.inner, bk)
    weights = _compat.Block((bn, padded), lambda i, j: (j, 0))
    biases = _compat.Block((bn,), lambda i, j: (j,))
    arrays = {"x": x, "gate": gate, "up": up, "gate_bias": gate_bias, "up_bias": up_bias}
    arrays = {name: a for name, a in arrays.items() if a is not None}
    blocks = {
        "x": _compat.Block((bm, padded), lambda i, j: (i, 0)),
        "gate": weights,
        "up": weights,
        "gate_bias": biases,
        "up_bias": biases,
    }

    def body(pid, *refs):
        named = dict(zip(arrays, refs, strict=False))
        row_ok = pid(0) * bm + jnp.arange(bm, dtype=jnp.int32) < case.rows
        column_ok = pid(1) * bn + jnp.arange(bn, dtype=jnp.int32) < case.columns

        def step(k, totals):
            inner_ok = (k * bk + jnp.arange(bk, dtype=jnp.int32) < case.inner)[None]
            at = (slice(None), _compat.ds(k * bk, bk))
            rows = _compat.load(_compat.at(named["x"], *at), mask=row_ok[:, None] & inner_ok, other=0)
            return tuple(
                total
                + _compat.dot(
                    rows,
                    _compat.load(_compat.at(named[name], *at), mask=column_ok[:, None] & inner_ok, other=0),
                    contract=(1, 1),
                    interpret=case.interpret,
                )
                for name, total in zip(("gate", "up"), totals, strict=True)
            )

        zero = jnp.zeros((bm, bn), jnp.float32)
        totals = jax.lax.fori_loop(jnp.int32(0), jnp.int32(padded // bk), step, (zero, zero))
        gate, up = (
            total
            if name not in named
            else total
            + _compat.load(_compat.at(named[name], slice(None)), mask=column_ok, other=0).astype(jnp.float32)[None]
            for name, total in zip(("gate_bias", "up_bias"), totals, strict=True)
        )
        out = _ACTIVATIONS[case.activation](gate) * up
        _compat.store(refs[-1], out.astype(refs[-1].dtype), mask=row_ok[:, None] & column_ok[None])

    return _compat.kernel_call(
        body,
        list(arrays.values()),
        name="gated_linear",
        grid=(_compat.cdiv(case.rows, bm), _compat.cdiv(case.columns, bn)),
        in_blocks=[blocks[name] for name in arrays],
        out_blocks=[_compat.Block((bm, bn), lambda i, j: (i, j))],
        out_shapes=[jax.ShapeDtypeStruct((case.rows, case.columns), case.dtype)],
        num_warps=config.num_warps,
        num_stages=config.num_stages,
        interpret=case.interpret,
    )[0]
