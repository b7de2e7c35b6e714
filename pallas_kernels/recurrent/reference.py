"""Recurrent sequences as a scan over time. The backward pass collects the gates' gradients, so that weights' gradients
are one product over all steps: JAX's own derivative of a scan adds up a (G H, H) matrix at every step."""

import jax
import jax.numpy as jnp
from jax import lax

from pallas_kernels.recurrent.cells import Case, Operands, step, step_backward

_UNROLL = 4


def forward(case: Case, operands: Operands):
    """States h (T, B, H), c (T, B, H) or None, and saved gates (S, T, B, H) or None. Rows past their length keep h."""
    size = case.hidden
    weight = operands.weight.reshape(-1, size).T

    def one(carry, now):
        h, c = carry
        t, x = now
        u = lax.dot_general(h, weight, (((1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)
        u = [u[:, k * size : (k + 1) * size] for k in range(case.gates)]
        if operands.hidden_bias is not None:
            u[2] = u[2] + operands.hidden_bias
        new_h, new_c, saved = step(case.mode, [x[:, k] for k in range(case.gates)], u, h, c)
        if case.lengths:
            alive = (t < operands.lengths)[:, None]
            new_h = jnp.where(alive, new_h, h)
            new_c = None if c is None else jnp.where(alive, new_c, c)
        return (new_h, new_c), (new_h, new_c, saved)

    times = jnp.arange(case.steps, dtype=jnp.int32)
    _, (h, c, saved) = lax.scan(
        one, (operands.h0, operands.c0), (times, operands.inputs), reverse=case.reverse, unroll=min(_UNROLL, case.steps)
    )
    return h, c, jnp.stack(saved) if saved else None


def backward(case: Case, operands: Operands, h, c, saved, grad, grad_c):
    """Gradients of inputs (T, B, G, H), of the hidden share of the gates (T, B, G, H), of h0, and of c0 or None.

    grad (T, B, H) belongs to h, grad_c (B, H) to the last c.
    """

    def one(carry, now):
        dh, dc = carry
        t, grad, h_before, h, c_before, c, saved = now
        dh = dh + grad
        alive = (t < operands.lengths)[:, None] if case.lengths else None
        x, u, passed, new_dc = step_backward(
            case.mode, dh, dc, h_before, h, c_before, c, [saved[k] for k in range(case.saved)]
        )
        if case.lengths:
            x, u = ([jnp.where(alive, g, 0) for g in gates] for gates in (x, u))
            passed = jnp.where(alive, passed, dh)
            new_dc = None if dc is None else jnp.where(alive, new_dc, dc)
        x, u = jnp.concatenate(x, 1), jnp.concatenate(u, 1)
        product = lax.dot_general(
            u, operands.weight.reshape(-1, case.hidden), (((1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST
        )
        return (passed + product, new_dc), (x, u)

    times = jnp.arange(case.steps, dtype=jnp.int32)
    spread = None if saved is None else jnp.moveaxis(saved, 0, 1)
    now = (times, grad, before(case, h, operands.h0), h, None if c is None else before(case, c, operands.c0), c, spread)
    (dh, dc), (x, u) = lax.scan(one, (jnp.zeros_like(operands.h0), grad_c), now, reverse=not case.reverse)
    shape = (case.steps, case.batch, case.gates, case.hidden)
    return x.reshape(shape), u.reshape(shape), dh, dc


def before(case: Case, states: jax.Array, first: jax.Array) -> jax.Array:
    """The state each step started from."""
    if case.reverse:
        return jnp.concatenate([states[1:], first[None]])
    return jnp.concatenate([first[None], states[:-1]])
