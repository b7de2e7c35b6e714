"""LayerNorm and RMSNorm for the GPU: whole rows in registers, statistics saved, one backward pass over the rows.

Backward programs walk the rows in fixed strides and each writes its partial weight gradients, which XLA sums: no
atomics, so results are the same from run to run.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pallas_kernels import _compat, _dispatch, _tune
from pallas_kernels.norm.reference import Case, Operands


@dataclass(frozen=True)
class Config:
    block: int  # rows at a time
    num_warps: int
    programs: int  # of the backward pass, per weight row


def heuristic(case: Case, backward: bool) -> Config:
    width = _compat.next_power_of_2(case.columns)
    block = max(1, min(_compat.next_power_of_2(case.repeats), (4096 if backward else 8192) // width, 32))
    warps = max(1, min(16, block * width // 1024))
    return Config(block, warps, max(1, 2 * _dispatch.device().processors // case.rows))


CANDIDATES = tuple(
    Config(block, warps, programs) for block in (1, 4, 16) for warps in (4, 8) for programs in (132, 264)
)


def tuning_key(kernel: str, case: Case) -> str:
    flags = tuple(name for name, on in (("centred", case.centred), ("residual", case.residual)) if on)
    return _tune.key(kernel, case.dtype, {"R": case.repeats, "W": case.rows, "D": case.columns}, flags)


def _config(kernel: str, case: Case, backward: bool) -> Config:
    return _tune.pick(kernel, tuning_key(kernel, case), Config, lambda: heuristic(case, backward))


def forward(case: Case, operands: Operands):
    """As `reference.forward`."""
    config = _config("norm_forward", case, False)
    block, width = config.block, _compat.next_power_of_2(case.columns)
    tile = _compat.Block((block, None, width), lambda i, w: (i, w, 0))
    row = _compat.Block((None, width), lambda i, w: (w, 0))
    stat = _compat.Block((block, None), lambda i, w: (i, w))
    arrays = {name: x for name, x in operands._asdict().items() if x is not None}
    names = list(arrays)

    def body(pid, *refs):
        named = dict(zip(names, refs, strict=False))
        y_ref, *outs = refs[len(names) :]
        column = jnp.arange(width) < case.columns
        here = pid(0) * block + jnp.arange(block) < case.repeats
        inside = here[:, None] & column[None]
        x = _compat.load(named["x"], mask=inside, other=0)
        if case.residual:
            x = x + _compat.load(named["residual"], mask=inside, other=0)
            _compat.store(outs.pop(0), x, mask=inside)
        centre = x.astype(jnp.float32)
        if case.centred:
            mean = centre.sum(1) / case.columns
            # The columns past the end would otherwise hold -mean and enter the variance.
            centre = jnp.where(column[None], centre - mean[:, None], 0.0)
            _compat.store(outs.pop(0), mean, mask=here)
        inverse = jax.lax.rsqrt((centre * centre).sum(1) / case.columns + jnp.float32(case.eps))
        _compat.store(outs.pop(0), inverse, mask=here)
        y = centre * inverse[:, None]
        if case.weight:
            y = y * _compat.load(named["weight"], mask=column, other=0).astype(jnp.float32)[None]
        if case.bias:
            y = y + _compat.load(named["bias"], mask=column, other=0).astype(jnp.float32)[None]
        _compat.store(y_ref, y.astype(y_ref.dtype), mask=inside)

    full = jax.ShapeDtypeStruct((case.repeats, case.rows, case.columns), case.dtype)
    stats = jax.ShapeDtypeStruct((case.repeats, case.rows), jnp.float32)
    shapes, blocks = [full], [tile]
    if case.residual:
        shapes.append(full)
        blocks.append(tile)
    count = 2 if case.centred else 1
    out = _compat.kernel_call(
        body,
        list(arrays.values()),
        name="norm_forward",
        grid=(_compat.cdiv(case.repeats, block), case.rows),
        in_blocks=[row if name in ("weight", "bias") else tile for name in names],
        out_blocks=[*blocks, *[stat] * count],
        out_shapes=[*shapes, *[stats] * count],
        num_warps=config.num_warps,
        num_stages=1,
        interpret=case.interpret,
    )
    x = out[1] if case.residual else operands.x
    return out[0], x, out[-2] if case.centred else None, out[-1]


def backward(case: Case, x, weight, mean, inverse, grad, grad_sum):
    """As `reference.backward`."""
    config = _config("norm_backward", case, True)
    block, width = config.block, _compat.next_power_of_2(case.columns)
    steps = _compat.cdiv(case.repeats, block)
    programs = min(config.programs, steps)
    named_arrays = {"x": x, "weight": weight, "mean": mean, "inverse": inverse, "grad": grad, "grad_sum": grad_sum}
    arrays = {name: a for name, a in named_arrays.items() if a is not None}
    names = list(arrays)
    length = steps * block
    tile = _compat.Block((length, None, width), lambda p, w: (0, w, 0))
    stat = _compat.Block((length, None), lambda p, w: (0, w))
    row = _compat.Block((None, width), lambda p, w: (w, 0))
    partial = _compat.Block((None, None, width), lambda p, w: (p, w, 0))
    kinds = {"weight": row, "mean": stat, "inverse": stat}

    def body(pid, *refs):
        named = dict(zip(names, refs, strict=False))
        dx_ref, *sums = refs[len(names) :]
        column = jnp.arange(width) < case.columns
        weight = _compat.load(named["weight"], mask=column, other=0).astype(jnp.float32) if "weight" in named else None
        first = pid(0)

        def step(k, carry):
            start = (first + k * programs) * block
            here = start + jnp.arange(block) < case.repeats
            inside = here[:, None] & column[None]
            rows = _compat.ds(start, block)
            wide = lambda name: _compat.load(_compat.at(named[name], rows, slice(None)), mask=inside, other=0).astype(
                jnp.float32
            )
            stat = lambda name: _compat.load(_compat.at(named[name], rows), mask=here, other=0)
            normal, grad = wide("x"), wide("grad")
            if case.centred:
                normal = jnp.where(inside, normal - stat("mean")[:, None], 0.0)
            inverse = stat("inverse")[:, None]
            normal = normal * inverse
            scaled = grad if weight is None else grad * weight[None]
            change = scaled - normal * ((scaled * normal).sum(1) / case.columns)[:, None]
            if case.centred:
                change = change - (scaled.sum(1) / case.columns)[:, None]
            change = change * inverse
            if "grad_sum" in named:
                change = change + wide("grad_sum")
            _compat.store(_compat.at(dx_ref, rows, slice(None)), change.astype(dx_ref.dtype), mask=inside)
            return carry[0] + (grad * normal).sum(0), carry[1] + grad.sum(0)

        zero = jnp.zeros((width,), jnp.float32)
        dweight, dbias = jax.lax.fori_loop(jnp.int32(0), (steps - first + programs - 1) // programs, step, (zero, zero))
        for wanted, value in ((case.weight, dweight), (case.bias, dbias)):
            if wanted:
                _compat.store(sums.pop(0), value, mask=column)

    sums = jax.ShapeDtypeStruct((programs, case.rows, case.columns), jnp.float32)
    count = case.weight + case.bias
    out = _compat.kernel_call(
        body,
        list(arrays.values()),
        name="norm_backward",
        grid=(programs, case.rows),
        in_blocks=[kinds.get(name, tile) for name in names],
        out_blocks=[tile, *[partial] * count],
        out_shapes=[jax.ShapeDtypeStruct(x.shape, case.dtype), *[sums] * count],
        num_warps=config.num_warps,
        num_stages=1,
        interpret=case.interpret,
    )
    totals = [part.sum(0) for part in out[1:]]
    return out[0], totals.pop(0) if case.weight else None, totals.pop(0) if case.bias else None
