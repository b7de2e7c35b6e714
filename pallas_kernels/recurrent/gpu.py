"""Recurrent sequences on the GPU with the state on chip: one program per block of batch rows loops over time.

For small hidden sizes only: every step multiplies by the whole hidden matrix, which must come from shared memory.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from pallas_kernels import _compat, _tune
from pallas_kernels.recurrent.cells import Case, Operands, step, step_backward
from pallas_kernels.recurrent.reference import before


@dataclass(frozen=True)
class Config:
    block: int  # batch rows per program; Triton's product wants 16
    num_warps: int


CANDIDATES = (Config(16, 4), Config(16, 8), Config(32, 4), Config(32, 8))


def tuning_key(kernel: str, case: Case) -> str:
    return _tune.key(kernel, case.dtype, {"B": case.batch, "H": case.hidden}, (case.mode,))


def _config(kernel: str, case: Case) -> Config:
    return _tune.pick(kernel, tuning_key(kernel, case), Config, lambda: Config(16, 4))


def _width(case: Case) -> int:
    return max(16, _compat.next_power_of_2(case.hidden))


def shared_memory(case: Case) -> int:
    """Bytes that a program stages in shared memory: both sides of its products, each as the high and the low part that
    three TF32 products take. The backward pass counts, with a tile of rows per gate; the forward pass has one tile: at
    GRU 128, 409600 bytes, which is what an H200 was asked for and refused."""
    block = max(_config(kernel, case).block for kernel in ("recurrent_forward", "recurrent_backward"))
    return 2 * 4 * case.gates * _width(case) * (_width(case) + block)


class _Rows:
    """Loads and stores (rows, H) tiles for one program's batch rows."""

    def __init__(self, case: Case, block: int, first):
        self.case, self.block = case, block
        self.width = _width(case)
        self.number = first + jnp.arange(block, dtype=jnp.int32)
        self.column = jnp.arange(self.width) < case.hidden
        self.inside = (self.number < case.batch)[:, None] & self.column[None]
        self.rows = _compat.ds(first, block)

    def load(self, ref, *lead, tail=()):
        return _compat.load(_compat.at(ref, *lead, self.rows, *tail, slice(None)), mask=self.inside, other=0)

    def store(self, ref, value, *lead, tail=()):
        _compat.store(_compat.at(ref, *lead, self.rows, *tail, slice(None)), value, mask=self.inside)

    def weights(self, ref) -> list:
        inside = self.column[:, None] & self.column[None]
        return [
            _compat.load(_compat.at(ref, k, slice(None), slice(None)), mask=inside, other=0)
            for k in range(self.case.gates)
        ]

    def lengths(self, ref):
        return _compat.load(_compat.at(ref, self.rows), mask=self.number < self.case.batch, other=0)


def _blocks(case: Case, block: int) -> dict[str, _compat.Block]:
    """Whole arrays, padded to whole blocks of rows and columns."""
    rows, width = _compat.round_up(case.batch, block), _width(case)
    whole = lambda *shape: _compat.Block(shape, lambda i: (0,) * len(shape))
    return {
        "gates": whole(case.steps, rows, case.gates, width),
        "states": whole(case.steps, rows, width),
        "saved": whole(case.steps, rows, case.saved, width),
        "state": whole(rows, width),
        "weight": whole(case.gates, width, width),
        "hidden_bias": whole(width),
        "lengths": whole(rows),
    }


def _shapes(case: Case) -> dict[str, jax.ShapeDtypeStruct]:
    make = lambda *shape: jax.ShapeDtypeStruct(shape, case.dtype)
    rows = (case.batch, case.hidden)
    return {
        "gates": make(case.steps, case.batch, case.gates, case.hidden),
        "states": make(case.steps, *rows),
        "saved": make(case.steps, case.batch, case.saved, case.hidden),
        "state": make(*rows),
    }


def _launch(case: Case, name: str, config: Config, body, inputs: dict, outputs: list[str]) -> list[jax.Array]:
    """inputs: name -> (array or None, kind of block)."""
    present = {key: pair for key, pair in inputs.items() if pair[0] is not None}
    blocks, shapes = _blocks(case, config.block), _shapes(case)

    def run(pid, *refs):
        rows = _Rows(case, config.block, pid(0) * config.block)
        body(rows, dict(zip(present, refs, strict=False)), list(refs[len(present) :]))

    return _compat.kernel_call(
        run,
        [array for array, _ in present.values()],
        name=name,
        grid=(_compat.cdiv(case.batch, config.block),),
        in_blocks=[blocks[kind] for _, kind in present.values()],
        out_blocks=[blocks[kind] for kind in outputs],
        out_shapes=[shapes[kind] for kind in outputs],
        num_warps=config.num_warps,
        num_stages=1,
        interpret=case.interpret,
    )


def forward(case: Case, operands: Operands):
    """As `reference.forward`."""

    def body(rows, refs, outs):
        weight = rows.weights(refs["weight"])
        bias = None
        if "hidden_bias" in refs:
            bias = _compat.load(_compat.at(refs["hidden_bias"], slice(None)), mask=rows.column, other=0)[None]
        lengths = rows.lengths(refs["lengths"]) if case.lengths else None

        def one(k, carry):
            t = case.steps - 1 - k if case.reverse else k
            h, c = carry
            u = [_compat.dot(h, w, contract=(1, 1), interpret=case.interpret) for w in weight]
            if bias is not None:
                u[2] = u[2] + bias
            x = [rows.load(refs["inputs"], t, tail=(g,)) for g in range(case.gates)]
            new_h, new_c, saved = step(case.mode, x, u, h, c)
            if case.lengths:
                alive = (t < lengths)[:, None]
                new_h = jnp.where(alive, new_h, h)
                new_c = jnp.where(alive, new_c, c) if case.cells else None
            rows.store(outs[0], new_h, t)
            if case.cells:
                rows.store(outs[1], new_c, t)
            for slot, value in enumerate(saved):
                rows.store(outs[-1], value, t, tail=(slot,))
            return new_h, new_c

        start = (rows.load(refs["h0"]), rows.load(refs["c0"]) if case.cells else None)
        jax.lax.fori_loop(jnp.int32(0), jnp.int32(case.steps), one, start)

    inputs = {
        "inputs": (operands.inputs, "gates"),
        "weight": (operands.weight, "weight"),
        "hidden_bias": (operands.hidden_bias, "hidden_bias"),
        "h0": (operands.h0, "state"),
        "c0": (operands.c0, "state"),
        "lengths": (operands.lengths, "lengths"),
    }
    outputs = ["states"] * (2 if case.cells else 1) + ["saved"] * (case.saved > 0)
    out = _launch(case, "recurrent_forward", _config("recurrent_forward", case), body, inputs, outputs)
    return out[0], out[1] if case.cells else None, out[-1] if case.saved else None


def backward(case: Case, operands: Operands, h, c, saved, grad, grad_c):
    """As `reference.backward`."""

    def body(rows, refs, outs):
        weight = rows.weights(refs["weight"])
        lengths = rows.lengths(refs["lengths"]) if case.lengths else None

        def one(k, carry):
            t = k if case.reverse else case.steps - 1 - k
            dh, dc = carry
            dh = dh + rows.load(refs["grad"], t)
            cells = [rows.load(refs[name], t) for name in ("c_before", "c")] if case.cells else [None, None]
            kept = [rows.load(refs["saved"], t, tail=(slot,)) for slot in range(case.saved)]
            x, u, passed, new_dc = step_backward(
                case.mode, dh, dc, rows.load(refs["h_before"], t), rows.load(refs["h"], t), *cells, kept
            )
            if case.lengths:
                alive = (t < lengths)[:, None]
                x, u = ([jnp.where(alive, g, 0.0) for g in gates] for gates in (x, u))
                passed = jnp.where(alive, passed, dh)
                new_dc = jnp.where(alive, new_dc, dc) if case.cells else None
            for g in range(case.gates):
                rows.store(outs[0], x[g], t, tail=(g,))
                if case.mode == "gru":
                    rows.store(outs[1], u[g], t, tail=(g,))
                passed = passed + _compat.dot(u[g], weight[g], contract=(1, 0), interpret=case.interpret)
            return passed, new_dc

        zero = jnp.zeros((rows.block, rows.width), jnp.float32)
        dh, dc = jax.lax.fori_loop(
            jnp.int32(0), jnp.int32(case.steps), one, (zero, rows.load(refs["grad_c"]) if case.cells else None)
        )
        rows.store(outs[-2] if case.cells else outs[-1], dh)
        if case.cells:
            rows.store(outs[-1], dc)

    inputs = {
        "weight": (operands.weight, "weight"),
        "lengths": (operands.lengths, "lengths"),
        "grad": (grad, "states"),
        "h_before": (before(case, h, operands.h0), "states"),
        "h": (h, "states"),
        "c_before": (before(case, c, operands.c0) if case.cells else None, "states"),
        "c": (c, "states"),
        "saved": (saved, "saved"),
        "grad_c": (grad_c, "state"),
    }
    outputs = ["gates"] * (2 if case.mode == "gru" else 1) + ["state"] * (2 if case.cells else 1)
    out = _launch(case, "recurrent_backward", _config("recurrent_backward", case), body, inputs, outputs)
    return (
        out[0],
        out[1] if case.mode == "gru" else out[0],
        out[-2] if case.cells else out[-1],
        out[-1] if case.cells else None,
    )
