"""Recurrent sequences as a scan over time. The backward pass collects the gates' gradients, so that weights' gradients
are one product over all steps: JAX's own derivative of a scan adds up a (G H, H) matrix at every step."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from pallas_kernels.recurrent.cells import Case, Operands, combine, step_backward


def forward(case: Case, operands: Operands):
    """States h (T, B, H), c (T, B, H) or None, and saved gates (T, B, S, H) or None. Rows past their length keep h."""
    weight = operands.weight.reshape(-1, case.hidden).T

    def one(carry, now):
        h, c = carry
        t, x = now
        u = lax.dot_general(h, weight, (((1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)
        new_h, new_c, saved = _step(case, x, u, operands.hidden_bias, h, c)
        if case.lengths:
            alive = (t < operands.lengths)[:, None]
            new_h = jnp.where(alive, new_h, h)
            new_c = None if c is None else jnp.where(alive, new_c, c)
        return (new_h, new_c), (new_h, new_c, saved)

    times = jnp.arange(case.steps, dtype=jnp.int32)
    now = (times, operands.inputs.reshape(case.steps, case.batch, -1))
    _, (h, c, saved) = lax.scan(one, (operands.h0, operands.c0), now, reverse=case.reverse)
    return h, c, None if saved is None else saved.reshape(case.steps, case.batch, case.saved, case.hidden)


def _step(case: Case, x: jax.Array, u: jax.Array, hidden_bias, h, c) -> tuple:
    """`cells.step` on (B, G H) arrays. All gates go through one tanh, sigmoid(x) being (1 + tanh(x / 2)) / 2: gate by
    gate, XLA's CPU backend computes them again for every use, which doubles the time of a step."""
    size = case.hidden
    cut = lambda a: [a[:, k : k + size] for k in range(0, a.shape[1], size)]
    if case.mode == "lstm":
        half = np.repeat(np.asarray([0.5, 0.5, 1, 0.5], x.dtype), size)
        gates = jnp.tanh((x + u) * half) * half + (1 - half)
        new_h, new_c, _ = combine(case.mode, cut(gates), h, c)
        return new_h, new_c, gates
    if case.mode == "gru":
        r, z = cut(jnp.tanh((x + u)[:, : 2 * size] / 2) / 2 + x.dtype.type(0.5))
        inner = u[:, 2 * size :]
        if hidden_bias is not None:
            inner = inner + hidden_bias
        gates = [r, z, jnp.tanh(x[:, 2 * size :] + r * inner), inner]
        return combine(case.mode, gates, h, c)[0], None, jnp.concatenate(gates, 1)
    return (jnp.tanh(x + u) if case.mode == "rnn_tanh" else jnp.maximum(x + u, 0)), None, None


def backward(case: Case, operands: Operands, h, c, saved, grad, grad_c):
    """Gradients of inputs (T, B, G, H), of the hidden share of the gates (T, B, G, H), of h0, and of c0 or None.

    grad (T, B, H) belongs to h, grad_c (B, H) to the last c.
    """

    def one(carry, now):
        dh, dc = carry
        t, grad, h_before, h, c_before, c, saved = now
        dh = dh + grad
        alive = (t < operands.lengths)[:, None] if case.lengths else None
        kept = [saved[:, k] for k in range(case.saved)]
        x, u, passed, new_dc = step_backward(case.mode, dh, dc, h_before, h, c_before, c, kept)
        if case.lengths:
            x, u = ([jnp.where(alive, g, 0) for g in gates] for gates in (x, u))
            passed = jnp.where(alive, passed, dh)
            new_dc = None if dc is None else jnp.where(alive, new_dc, dc)
        x, u = jnp.concatenate(x, 1), jnp.concatenate(u, 1)
        product = lax.dot_general(
            u, operands.weight.reshape(-1, case.hidden), (((1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST
        )
        return (passed + product, new_dc), (x, u if case.mode == "gru" else None)

    times = jnp.arange(case.steps, dtype=jnp.int32)
    c_before = None if c is None else before(case, c, operands.c0)
    now = (times, grad, before(case, h, operands.h0), h, c_before, c, saved)
    (dh, dc), (x, u) = lax.scan(one, (jnp.zeros_like(operands.h0), grad_c), now, reverse=not case.reverse)
    shape = (case.steps, case.batch, case.gates, case.hidden)
    x = x.reshape(shape)
    return x, x if u is None else u.reshape(shape), dh, dc


def before(case: Case, states: jax.Array, first: jax.Array) -> jax.Array:
    """The state each step started from."""
    if case.reverse:
        return jnp.concatenate([states[1:], first[None]])
    return jnp.concatenate([first[None], states[:-1]])
