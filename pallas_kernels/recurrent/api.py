"""`recurrent_layer` and `recurrent`: argument checks, choice of implementation, gradients."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from pallas_kernels import _check, _dispatch, _random
from pallas_kernels._dispatch import Device, Impl
from pallas_kernels._gradients import guarded
from pallas_kernels.recurrent import reference
from pallas_kernels.recurrent.cells import GATES, Case, Operands

_MAX_HIDDEN = 128  # the hidden matrix of every gate must stay on chip: no card has the room for a wider one


def recurrent_layer(
    mode: str,
    x: jax.Array,
    h0: jax.Array,
    c0: jax.Array | None,
    w_ih: jax.Array,
    w_hh: jax.Array,
    b_ih: jax.Array | None = None,
    b_hh: jax.Array | None = None,
    *,
    lengths: jax.Array | None = None,
    reverse: bool = False,
    impl: str | None = None,
) -> tuple:
    """One direction of one layer over x (T, B, I): (y (T, B, H), last h (B, H)) and, for "lstm", the last c (B, H).

    mode is "lstm", "gru", "rnn_tanh" or "rnn_relu"; weights are (G H, I), (G H, H), (G H,), (G H,) with gates in
    torch's order (i, f, g, o; r, z, n). lengths (B,) end each sequence: y is 0 beyond, the last state is the one at the
    end; `reverse` runs from the end to the start. The input's products are one product for all steps. Reverse-mode
    derivatives of any order; forward mode is not defined.
    """
    case = _canonical(mode, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse)
    if lengths is not None:
        lengths = lengths.astype(jnp.int32)
    if 0 in x.shape[:2] or case.hidden == 0:
        y = jnp.zeros((*x.shape[:2], case.hidden), x.dtype)
        return (y, h0, c0) if case.cells else (y, h0)
    choice = _dispatch.choose("recurrent_layer", IMPLEMENTATIONS, case, impl)
    name = choice.impl.name if choice.impl else None
    case = replace(case, interpret=choice.interpret)
    return _layer(case, name, lengths, x, h0, c0, w_ih, w_hh, b_ih, b_hh)


def recurrent(
    mode: str,
    x: jax.Array,
    h0: jax.Array,
    c0: jax.Array | None,
    weights: Sequence[Sequence[jax.Array]],
    *,
    bidirectional: bool = False,
    lengths: jax.Array | None = None,
    dropout: float = 0.0,
    seed=None,
    impl: str | None = None,
) -> tuple:
    """A stack of layers: y (T, B, H or 2 H), last h (L, B, H) and, for "lstm", last c (L, B, H).

    weights holds (w_ih, w_hh[, b_ih, b_hh]) per layer and direction, in torch's order (layer 0 forward, layer 0
    backward, layer 1 forward, ...); h0 and c0 are (L, B, H) in the same order. dropout acts between layers, with a mask
    that is a function of `seed`.
    """
    _check.arrays("recurrent", x=x, h0=h0)
    _check.optional("recurrent", c0=c0)
    directions = 2 if _check.flag("recurrent", "bidirectional", bidirectional) else 1
    if not weights or any(len(entry) not in (2, 4) for entry in weights):
        raise ValueError(
            "recurrent: weights must hold (w_ih, w_hh) or (w_ih, w_hh, b_ih, b_hh) for each layer and direction, got "
            f"entries of {[len(entry) for entry in weights]} arrays"
        )
    if c0 is not None and c0.shape != h0.shape:
        raise ValueError(f"recurrent: c0 must have the shape of h0 {h0.shape}, got {c0.shape}")
    if h0.ndim != 3 or h0.shape[0] != len(weights) or len(weights) % directions:
        raise ValueError(
            f"recurrent: h0 {h0.shape} must be (layers * directions, batch, hidden) and weights hold one "
            f"entry for each, got {len(weights)} with {directions} directions"
        )
    dropout = _check.dropout("recurrent", dropout, seed)
    last: list[tuple] = []
    for first in range(0, len(weights), directions):
        if first and dropout:
            x = _dropped(x, dropout, seed, first)
        outs = []
        for k in range(directions):
            index = first + k
            y, *state = recurrent_layer(
                mode,
                x,
                h0[index],
                None if c0 is None else c0[index],
                *weights[index],
                lengths=lengths,
                reverse=k == 1,
                impl=impl,
            )
            outs.append(y)
            last.append(tuple(state))
        x = jnp.concatenate(outs, -1) if directions == 2 else outs[0]
    return x, *(jnp.stack(states) for states in zip(*last, strict=True))


def _dropped(x: jax.Array, rate: float, seed, layer: int) -> jax.Array:
    words = _random.seed_words(seed)
    row = jnp.arange(x.shape[0] * x.shape[1], dtype=jnp.uint32)
    word0, word1 = _random.row_keys(words[0] ^ jnp.uint32(layer), words[1], row)
    keep = _random.keep(word0[:, None], word1[:, None], jnp.arange(x.shape[2], dtype=jnp.uint32), rate)
    return jnp.where(keep.reshape(x.shape), x / (1 - rate), 0).astype(x.dtype)


def _layer(case: Case, name: str | None, lengths, x, h0, c0, w_ih, w_hh, b_ih, b_hh) -> tuple:
    inputs = lax.dot_general(x, w_ih, (((2,), (1,)), ((), ())), precision=lax.Precision.HIGHEST)
    if b_ih is not None:
        inputs = inputs + b_ih
    hidden_bias = None
    if b_hh is not None:
        split = 2 * case.hidden
        if case.mode == "gru":  # the candidate's share is multiplied by the reset gate and cannot join the input's
            hidden_bias, b_hh = b_hh[split:], jnp.concatenate([b_hh[:split], jnp.zeros_like(b_hh[split:])])
        inputs = inputs + b_hh
    shape = (case.gates, case.hidden)
    operands = Operands(
        inputs.reshape(*x.shape[:2], *shape), w_hh.reshape(*shape, case.hidden), hidden_bias, h0, c0, lengths
    )
    h, c = _sequence(case, name, operands)
    final = h[0] if case.reverse else h[-1]
    y = h
    if lengths is not None:
        y = jnp.where((jnp.arange(case.steps)[:, None] < lengths)[..., None], h, 0)
    return (y, final, c) if case.cells else (y, final)


def _run(which: str, case: Case, name: str | None, *arrays):
    plain = partial(getattr(reference, which), case)
    if name is None:
        return plain(*arrays)
    from pallas_kernels.recurrent import gpu

    return guarded(partial(getattr(gpu, which), case), plain, interpret=case.interpret)(*arrays)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _sequence(case: Case, name: str | None, operands: Operands):
    """States (T, B, H) and the last c."""
    return _sequence_forward(case, name, operands)[0]


def _sequence_forward(case, name, operands):
    h, c, saved = _run("forward", case, name, operands)
    last = None if c is None else c[0] if case.reverse else c[-1]
    return (h, last), (operands, h, c, saved)


def _sequence_backward(case, name, residuals, gradients):
    operands, h, c, saved = residuals
    x, u, dh, dc = _run("backward", case, name, operands, h, c, saved, *gradients)
    rows = lambda a: a.reshape(-1, *a.shape[2:])
    weight = lax.dot_general(
        rows(u).reshape(-1, case.gates * case.hidden),
        rows(reference.before(case, h, operands.h0)),
        (((0,), (0,)), ((), ())),
        precision=lax.Precision.HIGHEST,
    )
    bias = None if operands.hidden_bias is None else u[:, :, 2].sum((0, 1))
    return (Operands(x, weight.reshape(operands.weight.shape), bias, dh, dc, None),)


_sequence.defvjp(_sequence_forward, _sequence_backward)


def _canonical(mode, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse) -> Case:
    if mode not in GATES:
        raise ValueError(f"recurrent_layer: mode must be one of {', '.join(GATES)}, got {mode!r}")
    _check.arrays("recurrent_layer", x=x, h0=h0, w_ih=w_ih, w_hh=w_hh)
    _check.optional("recurrent_layer", c0=c0, b_ih=b_ih, b_hh=b_hh)
    _check.integers("recurrent_layer", lengths=lengths)
    reverse = _check.flag("recurrent_layer", "reverse", reverse)
    named = {"x": x, "h0": h0, "c0": c0, "w_ih": w_ih, "w_hh": w_hh, "b_ih": b_ih, "b_hh": b_hh}
    for name, array in named.items():
        if array is not None and (array.dtype != x.dtype or not jnp.issubdtype(x.dtype, jnp.floating)):
            raise TypeError(
                f"recurrent_layer: arrays must have one floating dtype, got {name} {array.dtype}, x {x.dtype}"
            )
    if (c0 is None) == (mode == "lstm"):
        raise ValueError(f"recurrent_layer: c0 is for lstm, and lstm needs it (mode {mode})")
    if x.ndim != 3 or h0.ndim != 2:
        raise ValueError(f"recurrent_layer: x must be (T, B, I) and h0 (B, H), got {x.shape} and {h0.shape}")
    hidden, rows = h0.shape[1], GATES[mode] * h0.shape[1]
    wanted = {
        "h0": (x.shape[1], hidden),
        "c0": (x.shape[1], hidden),
        "w_ih": (rows, x.shape[2]),
        "w_hh": (rows, hidden),
        "b_ih": (rows,),
        "b_hh": (rows,),
    }
    for name, shape in wanted.items():
        if named[name] is not None and named[name].shape != shape:
            raise ValueError(
                f"recurrent_layer: {name} must have shape {shape} to fit x {x.shape} and h0 {h0.shape}, got "
                f"{named[name].shape}"
            )
    if lengths is not None and lengths.shape != x.shape[1:2]:
        raise ValueError(
            f"recurrent_layer: lengths must have shape {x.shape[1:2]} to fit x {x.shape}, got {lengths.shape}"
        )
    return Case(mode, x.shape[0], x.shape[1], hidden, str(x.dtype), lengths is not None, reverse)


def _triton_supports(device: Device, case: Case) -> str | None:
    if case.dtype != "float32":
        return f"{case.dtype} is not supported"
    if case.hidden > _MAX_HIDDEN:
        return f"hidden size {case.hidden} is over {_MAX_HIDDEN}"
    if device.platform == "cuda":
        if device.capability < 80:
            return f"compute capability {device.capability / 10} is under 8.0"
        from pallas_kernels.recurrent import gpu

        needed, given = gpu.shared_memory(case), device.shared_memory
        if needed > given:
            return f"{case.mode} of hidden size {case.hidden} wants {needed} bytes of shared memory, over {given}"
    size = case.steps * case.batch * case.hidden * 4
    return None if size <= 2**31 else f"an array of {size} elements is over 2**31"


IMPLEMENTATIONS = (
    Impl("triton", ("cuda",), "pallas_kernels.recurrent.gpu:forward", _triton_supports, interpretable=True),
)
