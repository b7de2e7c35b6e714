"""The kernels that operations run on GPUs and TPUs: those of pallas_kernels, registered by platform.

A kernel gets the operation's arrays and statics and returns its results, or NotImplemented where the operation's own
formula should run. Which of its implementations serves a call is pallas_kernels' decision; it is imported when the
first program for such a device is traced.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from ..._core.registry import Op
from ...ops.rnn import GRU, LSTM, RNN
from .attention import ATTENTION_ANYWHERE, FUSED_ATTENTION, fused
from .cross_entropy import CROSS_ENTROPY
from .grouped import GROUPED
from .normalization import LAYER_NORM, RMS_NORM

PLATFORMS = ("cuda", "tpu")


class _Declined(Exception):
    """The kernel returned NotImplemented while it was differentiated."""


def _run(kernel: Callable, args: tuple, places: list[int], given: tuple) -> tuple:
    """The kernel's results, with `given` in these places of its arguments."""
    args = list(args)
    for i, x in zip(places, given):
        args[i] = x
    made = kernel(*args)
    if made is NotImplemented:
        raise _Declined
    return made if isinstance(made, tuple) else (made,)


def register(op: Op, kernel: Callable) -> None:
    """`kernel` for `op`, and its derivative (by the kernel's own rules) for op.backward.

    The kernel may return fewer results than the operation: the others are what the operation's own derivative reads,
    and come from its formula. A program that holds forward and backward never computes them."""
    def forward(*args):
        # as its derivative runs it (cuDNN's attention differs), so that XLA finds the two to be one where a program holds both
        wanted = [i for i, a in enumerate(args) if hasattr(a, "dtype") and jnp.issubdtype(a.dtype, jnp.floating)]
        try:
            made, _ = jax.vjp(lambda *given: _run(kernel, args, wanted, given), *(args[i] for i in wanted))
        except _Declined:
            return NotImplemented
        return made[0] if len(made) == 1 else (*made, *op.kernel(jnp, *args)[len(made):])

    def backward(*args):
        *arrays, plan, needs = args
        ins, outs = plan.saved(needs)
        gradients = arrays[len(ins) + len(outs):]
        given = dict(zip(ins, arrays))
        if any(a is not None and i not in given for i, a in enumerate(plan.avals)):
            raise AssertionError(f"the derivative of {op.name} must read every input that its kernel does")
        full = [given.get(i) for i in range(len(plan.avals))]
        wanted = [i for i, need in enumerate(needs) if need]
        try:
            made, pull = jax.vjp(lambda *given: _run(kernel, (*full, *plan.statics), wanted, given), *(full[i] for i in wanted))
        except _Declined:
            return NotImplemented
        if any(g is not None for g in gradients[len(made):]):  # a derivative of the derivative
            return NotImplemented
        return list(pull(tuple(jnp.zeros_like(m) if g is None else g for m, g in zip(made, gradients))))
    op.kernel_for(*PLATFORMS)(forward)
    op.backward.kernel_for(*PLATFORMS)(backward)


# -- norms: XLA's fusions forward, one pass over the rows backward -----------------------------------------------------------


@LAYER_NORM.backward.kernel_for(*PLATFORMS)
def _layer_norm_backward(x, *rest):
    *weight, g, plan, needs = rest
    return _norm_backward(x, weight[0] if weight else None, g, plan, needs, True)


@RMS_NORM.backward.kernel_for(*PLATFORMS)
def _rms_norm_backward(x, *rest):
    *weight, g, plan, needs = rest
    return _norm_backward(x, weight[0] if weight else None, g, plan, needs, False)


def _norm_backward(x, weight, g, plan, needs, centred: bool):
    from pallas_kernels import norm_gradients
    if weight is not None and weight.dtype != x.dtype:
        return NotImplemented
    axes, eps = plan.statics
    made = norm_gradients(x, weight, g, bias=centred and needs[2], axes=axes, eps=eps, centred=centred)
    return [m.astype(a.dtype.np) for m, need, a in zip(made, needs, plan.avals) if need]


# -- losses, attention, products ---------------------------------------------------------------------------------------------


def _cross_entropy(x, target, weight, ignore, reduction, smoothing):
    from pallas_kernels import cross_entropy
    if x.ndim != 2 or (weight is not None and weight.dtype != x.dtype):
        return NotImplemented
    return cross_entropy(x, target, class_weight=weight, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing)


def _attention(q, k, v, mask, drop, keep_scale, scale, causal):
    return NotImplemented if drop is not None else fused(jnp, q, k, v, mask, scale, causal)


def _grouped(x, weight, ends):
    from pallas_kernels import grouped_mm
    return grouped_mm(x, weight, jnp.diff(ends, prepend=0).astype(jnp.int32))


register(CROSS_ENTROPY, _cross_entropy)
register(ATTENTION_ANYWHERE, _attention)
register(FUSED_ATTENTION, functools.partial(fused, jnp))
register(GROUPED, _grouped)

# -- recurrent layers --------------------------------------------------------------------------------------------------------


def _recurrent(mode: str, x, states: tuple, weights: tuple, mask, k: int, reverse: bool):
    from pallas_kernels import recurrent_layer
    if any(a is not None and a.dtype != x.dtype for a in (*states, *weights)):
        return NotImplemented
    h0, c0 = (*(s[k] for s in states), None)[:2]
    lengths = None if mask is None else mask[:, :, 0].sum(0, dtype=jnp.int32)
    y, *last = recurrent_layer(mode, x, h0, c0, *weights, lengths=lengths, reverse=reverse)
    if mask is not None:  # past a sequence's end it gives 0, and the operation the state that passes through
        y = jnp.where(mask, y, h0 if reverse else last[0])
    return y, *(state[None] for state in last)


def _lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse):
    return _recurrent("lstm", x, (h0, c0), (w_ih, w_hh, b_ih, b_hh), mask, k, reverse)


def _gru(x, h0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse):
    return _recurrent("gru", x, (h0,), (w_ih, w_hh, b_ih, b_hh), mask, k, reverse)


def _rnn(x, h0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse, relu):
    return _recurrent("rnn_relu" if relu else "rnn_tanh", x, (h0,), (w_ih, w_hh, b_ih, b_hh), mask, k, reverse)


register(LSTM, _lstm)
register(GRU, _gru)
register(RNN, _rnn)
