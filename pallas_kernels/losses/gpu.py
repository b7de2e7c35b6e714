"""Row statistics of logits in one read: running maximum and sum over blocks of classes."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pallas_kernels import _compat, _tune
from pallas_kernels.losses.reference import Case


@dataclass(frozen=True)
class Config:
    block: int  # classes at a time
    num_warps: int


CANDIDATES = (Config(2048, 4), Config(4096, 4), Config(4096, 8), Config(8192, 8))


def tuning_key(case: Case) -> str:
    return _tune.key("cross_entropy", case.dtype, {"N": case.rows, "V": case.classes})


def statistics(case: Case, logits: jax.Array, target: jax.Array, class_weight: jax.Array | None):
    """As `reference.statistics`; one program per row."""
    width = min(4096, _compat.next_power_of_2(case.classes))
    config = _tune.pick("cross_entropy", tuning_key(case), Config, lambda: Config(width, 4 if width <= 2048 else 8))
    block = config.block
    length = _compat.round_up(case.classes, block)
    arrays = [logits, target.astype(jnp.int32)] + ([] if class_weight is None else [class_weight])
    one = _compat.Block((1,), lambda i: (i,))
    blocks = [_compat.Block((None, length), lambda i: (i, 0)), one, _compat.Block((length,), lambda i: (0,))]

    def body(pid, logits_ref, target_ref, *refs):
        weight_ref = refs[0] if case.weighted else None
        outs = refs[1:] if case.weighted else refs
        target = target_ref[0]

        def step(j, carry):
            top, total, picked, weighted = carry
            column = j * block + jnp.arange(block, dtype=jnp.int32)
            inside = column < case.classes
            at = _compat.ds(j * block, block)
            z = _compat.load(_compat.at(logits_ref, at), mask=inside, other=0).astype(jnp.float32)
            shown = jnp.where(inside, z, -jnp.inf)
            new_top = jnp.maximum(top, shown.max())
            total = total * jnp.exp(top - new_top) + jnp.exp(shown - new_top).sum()
            picked = picked + jnp.where(inside & (column == target), z, 0.0).sum()
            if case.smoothing:
                if weight_ref is not None:
                    z = z * _compat.load(_compat.at(weight_ref, at), mask=inside, other=0).astype(jnp.float32)
                weighted = weighted + z.sum()
            return new_top, total, picked, weighted

        zero = jnp.float32(0)
        lowest = jnp.float32(jnp.finfo(jnp.float32).min)
        steps = jnp.int32(_compat.cdiv(case.classes, block))
        top, total, picked, weighted = jax.lax.fori_loop(jnp.int32(0), steps, step, (lowest, zero, zero, zero))
        known = (target == case.ignore_index) | ((target >= 0) & (target < case.classes))
        outs[0][0] = top + jnp.log(total)
        outs[1][0] = jnp.where(known, picked, jnp.nan)
        if case.smoothing:
            outs[2][0] = weighted

    count = 3 if case.smoothing else 2
    out = _compat.kernel_call(
        body,
        arrays,
        name="cross_entropy",
        grid=(case.rows,),
        in_blocks=blocks[: len(arrays)],
        out_blocks=[one] * count,
        out_shapes=[jax.ShapeDtypeStruct((case.rows,), jnp.float32)] * count,
        num_warps=config.num_warps,
        num_stages=2,
        interpret=case.interpret,
    )
    return out[0], out[1], out[2] if case.smoothing else None
