"""Recurrent sequences: LSTM, GRU and plain RNN, one op per layer and direction; cells as elementwise formulas.

The input projections of all steps are one product outside the loop. The forward loop keeps its gates; the backward loop
multiplies by what they give for all steps at once, and the weights' gradients are one product each after it. Variable
lengths enter as a mask: where it is zero the state passes through unchanged, which serves both directions.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jax import lax

from .. import _autocast
from .._core import dtype as dt
from .._core.registry import Op
from .._public import public
from .._tensor import Tensor, apply, as_tensor_value
from .cpu_products import by_rows_of, matmul
from .creation import zeros_like
from .joining import cat
from .limits import at_least
from .matmul import all_of_columns, linear, linear_kernel, of_columns

ROW = 1 << 12  # bytes of a step's row from which it is quicker to replace it


def scan(xp, step: Callable, carry: tuple, xs: tuple, reverse: bool):
    """lax.scan over the leading axis, in NumPy or JAX. XLA gains nothing from several steps per iteration here."""
    if xp is not np:
        return lax.scan(step, carry, xs, reverse=reverse)
    n, rows = next(x.shape[0] for x in xs if x is not None), []
    for t in reversed(range(n)) if reverse else range(n):
        carry, row = step(carry, tuple(None if x is None else x[t] for x in xs))
        rows.append(row)
    if reverse:
        rows.reverse()
    return carry, tuple(np.stack(column) for column in zip(*rows))


def _replacing(xp, step: Callable, carry: tuple, xs: tuple, reverse: bool):
    """A scan in which the last of a step's results takes the place of the first of what it reads. XLA's CPU backend fills the arrays of a loop's results with zeros
    first, and copies these; but a step gets slower, and with a batch of one the array is copied at each."""
    first, *others = xs
    if xp is np or first.shape[1] == 1 or first[0].size * first.dtype.itemsize < ROW:
        return scan(xp, step, carry, xs, reverse)

    def replace(state, now):
        (carry, rows), (t, *others) = state, now
        carry, (*made, row) = step(carry, (lax.dynamic_index_in_dim(rows, t, keepdims=False), *others))
        return (carry, lax.dynamic_update_index_in_dim(rows, row, t, 0)), made
    (carry, rows), made = lax.scan(replace, (carry, first), (np.arange(len(first), dtype=np.int32), *others), reverse=reverse)
    return carry, (*made, rows)


def _projection(xp, x, w, b):
    """The product of all steps' inputs with w and, where it is without them, the biases that each step has to add: for all steps at once XLA would
    read and write the whole product once more."""
    apart = xp is not np and x.dtype.itemsize > 2  # a sum of 16-bit numbers is rounded once
    return (linear_kernel(xp, x, w, None), b) if apart else (linear_kernel(xp, x, w, b), None)


def _keep(xp, mask, new, old):
    return new if mask is None else xp.where(mask, new, old)


def _previous(xp, first, states, reverse):
    """The state before each step."""
    return xp.concatenate([states[1:], first[None]]) if reverse else xp.concatenate([first[None], states[:-1]])


def _parts(x, n: int) -> list:
    """x cut into pieces of n along the last axis."""
    return [x[..., k:k + n] for k in range(0, x.shape[-1], n)]


def _masked(xp, mask, x):
    return x if mask is None else xp.where(mask, x, xp.zeros((), x.dtype))


def _total(a, b):
    return a if b is None else b if a is None else a + b


def _one(full, state, k: int, xp):
    """The gradient of `full` (L, B, H), of which only row k was read."""
    if full.shape[0] == 1:
        return state[None]
    hot = (np.arange(full.shape[0]) == k).reshape(-1, 1, 1)
    return xp.where(hot, state[None], xp.zeros((), state.dtype))


def _weights(xp, dx, du, x, h_before, w_ih, needs, plan):
    """Gradients of x, w_ih, w_hh, b_ih, b_hh from those of the gates' input share `dx` and hidden share `du` (T, B, G H).
    `needs` tells for the five."""
    flat = lambda a: a.reshape(-1, a.shape[-1])
    rows = flat(dx)
    gx = matmul(xp, rows, w_ih).reshape(x.shape) if needs[0] else None
    if needs[1] and needs[2] and du is dx:
        g_ih, g_hh = all_of_columns(xp, rows, [flat(x), flat(h_before)], plan)
    else:
        g_ih = of_columns(xp, rows, flat(x), plan) if needs[1] else None
        g_hh = of_columns(xp, flat(du), flat(h_before), plan) if needs[2] else None
    b_ih = xp.sum(rows, axis=0) if needs[3] or (needs[4] and du is dx) else None
    return gx, g_ih, g_hh, b_ih, b_ih if du is dx else xp.sum(flat(du), axis=0) if needs[4] else None


# Each layer's kernel takes x (T, B, I), states (L, B, H) of which it reads row k, weights (G H, I) and (G H, H), biases or
# None, and a mask (T, B, 1) or None. Results: states of all steps, the last state(s) as (1, B, H), and then what only the
# derivative reads. Gradients of those come from derivatives of the derivative; any gradient may be None. The derivatives
# name the biases, which only a device's own kernel reads (accelerated.py).

# -- LSTM ------------------------------------------------------------------------------------------------------------------


def _lstm(xp, x, h0, c0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse, w_hr=None):
    """(hidden states, last h, last c, cell states, gates after their activation in the order i f g o)."""
    n = c0.shape[-1]
    (gx, bias), by_weights = _projection(xp, x, w_ih, _total(b_ih, b_hh)), by_rows_of(xp, w_hh)
    projected = None if w_hr is None else by_rows_of(xp, w_hr)
    half = np.repeat(np.asarray([0.5, 0.5, 1, 0.5], x.dtype), n)  # one tanh for all gates: sigmoid(x) is (1 + tanh(x / 2)) / 2

    def step(carry, now):
        (h, c), (g, m) = carry, now
        gates = xp.tanh(_total(g + by_weights(h), bias) * half) * half + (1 - half)
        i, f, cell, o = _parts(gates, n)
        c2 = f * c + i * cell
        h2 = o * xp.tanh(c2)
        if projected is not None:
            h2 = projected(h2)
        c2, h2 = _keep(xp, m, c2, c), _keep(xp, m, h2, h)
        return (h2, c2), (h2, c2, gates)
    (h, c), (hs, cs, gates) = _replacing(xp, step, (h0[k], c0[k]), (gx, mask), reverse)
    return [hs, h[None], c[None], cs, gates]


def _lstm_vjp(xp, x, h0, c0, w_ih, w_hh, b_ih, b_hh, mask, out0, out3, out4, k, reverse, needs, plan, g0=None, g1=None, g2=None, g3=None, g4=None):
    return _lstm_gradients(xp, x, h0, c0, w_ih, w_hh, None, mask, out0, out3, out4, k, reverse, needs, plan, g0, g1, g2, g3, g4)


def _lstm_gradients(xp, x, h0, c0, w_ih, w_hh, w_hr, mask, hs, cs, gates, k, reverse, needs, plan, g0, g1, g2, g3, g4) -> tuple:
    """The gradients of an LSTM's arguments, `w_hr` among them where hidden states are projected."""
    n = c0.shape[-1]
    i, f, cell, o = _parts(gates, n)
    t = xp.tanh(cs)
    slopes = i * (1 - i), f * (1 - f), 1 - cell * cell, o * (1 - o)
    join = lambda *parts: _masked(xp, mask, xp.concatenate([slope * part for slope, part in zip(slopes, parts)], -1))
    share = join(cell, _previous(xp, c0[k], cs, reverse), i, t)
    extra = None if g4 is None else join(*_parts(g4, n))

    def step(carry, now):
        dh, dc = carry
        share, gh, gc, to_cell, gates, extra, m = now
        dh, dc = _total(dh, gh), _total(dc, gc)
        whole = dh if w_hr is None else matmul(xp, dh, w_hr)
        inner = dc + whole * to_cell
        dz = _total(xp.concatenate([inner, inner, inner, whole], -1) * share, extra)
        return (_keep(xp, m, matmul(xp, dz, w_hh), dh), _keep(xp, m, inner * gates[:, n:2 * n], dc)), (dz,) if w_hr is None else (dh, dz)
    start = xp.zeros_like(h0[k]) if g1 is None else g1[0], xp.zeros_like(c0[k]) if g2 is None else g2[0]
    (dh, dc), (*dhs, dz) = _replacing(xp, step, start, (share, g0, g3, o * (1 - t * t), gates, extra, mask), not reverse)
    before = _previous(xp, h0[k], hs, reverse)
    gradients = list(_weights(xp, dz, dz, x, before, w_ih, (needs[0], *needs[3:7]), plan))
    gradients[1:1] = _one(h0, dh, k, xp), _one(c0, dc, k, xp)
    if w_hr is not None:
        flat = lambda a: a.reshape(-1, a.shape[-1])
        gradients.append(of_columns(xp, flat(_masked(xp, mask, dhs[0])), flat(o * t), plan) if needs[7] else None)
    return *gradients, None


def _results(x, h0, states: int, *more) -> list:
    """Avals of the states of all steps, of the last states, and of arrays (T, B, width) that the derivative reads."""
    steps, batch, n = *x.shape[:2], h0.shape[-1]
    return [((steps, batch, n), x.dtype), *[((1, batch, n), x.dtype)] * states, *(((steps, batch, width), x.dtype) for width in more)]


LSTM = Op("lstm_sequence", _lstm, vjp=_lstm_vjp, torch_name="LstmBackward0",
          shape=lambda x, h0, c0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse: _results(x, h0, 2, h0.shape[-1], 4 * h0.shape[-1]))

# -- LSTM with projected hidden states (Sak et al. 2014): a hidden state is w_hr times what an LSTM's would be ---------------


def _projected_lstm(xp, x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, mask, k, reverse):
    return _lstm(xp, x, h0, c0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse, w_hr)


def _projected_lstm_vjp(xp, x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, mask, out0, out3, out4, k, reverse, needs, plan, g0=None, g1=None, g2=None, g3=None, g4=None):
    return _lstm_gradients(xp, x, h0, c0, w_ih, w_hh, w_hr, mask, out0, out3, out4, k, reverse, needs, plan, g0, g1, g2, g3, g4)


def _projected_lstm_results(x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, mask, k, reverse) -> list:
    (steps, batch), n, m = x.shape[:2], c0.shape[-1], h0.shape[-1]
    return [(shape, x.dtype) for shape in ((steps, batch, m), (1, batch, m), (1, batch, n), (steps, batch, n), (steps, batch, 4 * n))]


PROJECTED_LSTM = Op("projected_lstm_sequence", _projected_lstm, vjp=_projected_lstm_vjp, torch_name="StackBackward0", shape=_projected_lstm_results)

# -- GRU -------------------------------------------------------------------------------------------------------------------


def _gru(xp, x, h0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse):
    """(hidden states, last h, gates r z n and the hidden part of n)."""
    gx, by_weights, n = linear_kernel(xp, x, w_ih, b_ih), by_rows_of(xp, w_hh), h0.shape[-1]
    half = np.asarray(0.5, x.dtype)

    def step(carry, now):
        (h,), (g_r, g_z, g_n, m) = carry, now
        u_r, u_z, u_n = _parts(_total(by_weights(h), b_hh), n)
        r, z = (xp.tanh(a * half) * half + half for a in (g_r + u_r, g_z + u_z))
        new = xp.tanh(g_n + r * u_n)
        h2 = _keep(xp, m, (1 - z) * new + z * h, h)
        return (h2,), (h2, xp.concatenate([r, z, new, u_n], -1))
    # gates as arrays of their own: with slices of one inside the loop, XLA's CPU backend takes twice as long over a step
    (h,), (hs, gates) = scan(xp, step, (h0[k],), (*_parts(gx, n), mask), reverse)
    return [hs, h[None], gates]


def _gru_vjp(xp, x, h0, w_ih, w_hh, b_ih, b_hh, mask, out0, out2, k, reverse, needs, plan, g0=None, g1=None, g2=None):
    n = h0.shape[-1]
    before = _previous(xp, h0[k], out0, reverse)
    r, z, new, hn = _parts(out2, n)
    to_new = (1 - z) * (1 - new * new)
    to_r = r * (1 - r) * hn
    join = lambda *parts: _masked(xp, mask, xp.concatenate(parts, -1))
    share = join(to_new * to_r, (before - new) * z * (1 - z), to_new * r)  # of the hidden product's gradient in dh
    extra = None
    if g2 is not None:
        g_r, g_z, g_new, g_hn = _parts(g2, n)
        g_new = g_new * (1 - new * new)
        extra = join(g_r * r * (1 - r) + g_new * to_r, g_z * z * (1 - z), g_new * r + g_hn)

    def step(carry, now):
        (dh,), (gh, z, share, extra, m) = carry, now
        dh = _total(dh, gh)
        du = _total(xp.concatenate([dh, dh, dh], -1) * share, extra)
        return (_keep(xp, m, matmul(xp, du, w_hh) + dh * z, dh),), (du, dh)
    start = xp.zeros_like(h0[k]) if g1 is None else g1[0]
    (dh,), (du, dhs) = scan(xp, step, (start,), (g0, z, share, extra, mask), not reverse)
    inner = dhs * to_new if g2 is None else dhs * to_new + g_new
    dx = xp.concatenate([du[..., :2 * n], _masked(xp, mask, inner)], -1)
    gx, *rest = _weights(xp, dx, du, x, before, w_ih, (needs[0], *needs[2:6]), plan)
    return gx, _one(h0, dh, k, xp), *rest, None


GRU = Op("gru_sequence", _gru, vjp=_gru_vjp, torch_name="GruBackward0",
         shape=lambda x, h0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse: _results(x, h0, 1, 4 * h0.shape[-1]))

# -- plain RNN -------------------------------------------------------------------------------------------------------------


def _rnn(xp, x, h0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse, relu):
    """(hidden states, last h)."""
    (gx, bias), by_weights = _projection(xp, x, w_ih, _total(b_ih, b_hh)), by_rows_of(xp, w_hh)

    def step(carry, now):
        (h,), (g, m) = carry, now
        z = _total(g + by_weights(h), bias)
        h2 = _keep(xp, m, at_least(xp, z, np.zeros((), z.dtype)) if relu else xp.tanh(z), h)
        return (h2,), (h2,)
    (h,), (hs,) = _replacing(xp, step, (h0[k],), (gx, mask), reverse)
    return [hs, h[None]]


def _rnn_vjp(xp, x, h0, w_ih, w_hh, b_ih, b_hh, mask, out0, k, reverse, relu, needs, plan, g0=None, g1=None):
    share = _masked(xp, mask, (out0 > 0).astype(out0.dtype) if relu else 1 - out0 * out0)

    def step(carry, now):
        (dh,), (share, gh, m) = carry, now
        dh = _total(dh, gh)
        dz = dh * share
        return (_keep(xp, m, matmul(xp, dz, w_hh), dh),), (dz,)
    start = xp.zeros_like(h0[k]) if g1 is None else g1[0]
    (dh,), (dz,) = _replacing(xp, step, (start,), (share, g0, mask), not reverse)
    gx, *rest = _weights(xp, dz, dz, x, _previous(xp, h0[k], out0, reverse), w_ih, (needs[0], *needs[2:6]), plan)
    return gx, _one(h0, dh, k, xp), *rest, None


RNN = Op("rnn_sequence", _rnn, vjp=_rnn_vjp, torch_name="RnnBackward0",
         shape=lambda x, h0, w_ih, w_hh, b_ih, b_hh, mask, k, reverse, relu: _results(x, h0, 1))
LSTM.loops = PROJECTED_LSTM.loops = GRU.loops = RNN.loops = True
LSTM.cudnn = PROJECTED_LSTM.cudnn = GRU.cudnn = RNN.cudnn = "rnn"

# -- layers ----------------------------------------------------------------------------------------------------------------


def _layer(kind: str, x: Tensor, states: tuple, weights: tuple, mask, k: int, reverse: bool):
    """One direction of one layer from row k of the states: (states of all steps, last states (1, B, H))."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    if w_hr is not None:
        hs, h, c, _, _ = apply(PROJECTED_LSTM, (x, *states, w_ih, w_hh, b_ih, b_hh, w_hr, mask), (k, reverse))
        return hs, (h, c)
    if kind == "lstm":
        hs, h, c, _, _ = apply(LSTM, (x, *states, w_ih, w_hh, b_ih, b_hh, mask), (k, reverse))
        return hs, (h, c)
    if kind == "gru":
        hs, h, _ = apply(GRU, (x, *states, w_ih, w_hh, b_ih, b_hh, mask), (k, reverse))
    else:
        hs, h = apply(RNN, (x, *states, w_ih, w_hh, b_ih, b_hh, mask), (k, reverse, kind == "rnn_relu"))
    return hs, (h,)


def _sequence(kind: str, x: Tensor, hx: tuple, params, has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
              mask=None, packed: tuple | None = None):
    """All layers over x (T, B, I); hx holds tensors of (layers * directions, B, H). `packed`: the (time, batch) places of a packed
    sequence's rows, over which dropout then draws, as torch does."""
    from ..nn._functional.dropout import dropout as drop
    directions = 2 if bidirectional else 1
    per = len(params) // (num_layers * directions)
    if per < (4 if has_biases else 2) or len(params) % (num_layers * directions):
        raise RuntimeError("got an incorrect number of RNN parameters")
    if not x.size(0):
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    finals = [[] for _ in hx]
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            p = params[k * per:(k + 1) * per]
            biases = p[2:4] if has_biases else (None, None)
            projection = p[-1] if per == (5 if has_biases else 3) else None
            ys, last = _layer(kind, x, hx, (p[0], p[1], *biases, projection), mask, k, direction == 1)
            outs.append(ys)
            for store, state in zip(finals, last):
                store.append(state)
        x = outs[0] if directions == 1 else cat(outs, -1)
        if dropout and train and layer + 1 < num_layers:
            x = drop(x, dropout, True) if packed is None else zeros_like(x).index_put(packed, drop(x[packed], dropout, True))
    return (x, *(f[0] if len(f) == 1 else cat(f) for f in finals))


def _mask_of(batch_sizes: np.ndarray, batch: int, device) -> Tensor:
    return as_tensor_value((np.arange(batch) < batch_sizes[:, None])[:, :, None], device)


def _packed_positions(batch_sizes: np.ndarray):
    t = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    b = np.concatenate([np.arange(n) for n in batch_sizes]) if len(batch_sizes) else np.zeros(0, np.int64)
    return t, b


def _as_autocast_takes(kind: str, args: tuple) -> tuple | None:
    """What a sequence function computes with under autocast; None where that is off. torch does everything in autocast's dtype where cuDNN or, for LSTMs
    that are not packed, oneDNN computes it, in plain RNNs, and on sequences of that dtype; results of an LSTM's projection are of it. In what else is
    float32 it makes the products alone in 16 bits; here nothing."""
    data = args[0]
    device = data.device.type
    dtype = _autocast.state.enabled.get(device)
    if dtype is None:
        return None
    packed = isinstance(args[1], Tensor) and isinstance(args[3], (list, tuple))
    params, has_biases, num_layers, *_, bidirectional = args[3:] if packed else args[2:8]
    if data.dtype is dt.float64:
        linear(data, params[0], params[2] if has_biases else None)  # raises unless the weights are of 64 bits, too
        return None
    projected = len(params) // max(num_layers * (1 + bool(bidirectional)), 1) == (5 if has_biases else 3)
    narrow = device != "cpu" or data.dtype is dtype or kind.startswith("rnn") or kind == "lstm" and (projected or not packed)
    return tuple([_autocast.cast(x, device, dtype if narrow else dt.float32) for x in args])


def _entry(kind: str):
    def f(*args) -> tuple[Tensor, ...]:
        if len(args) != 9 or not isinstance(args[0], Tensor):
            raise TypeError(f"{kind}() received an invalid combination of arguments")
        if _autocast.active[0] and (taken := _as_autocast_takes(kind, args)) is not None:
            with _autocast.disabled(args[0].device.type):
                return f(*taken)
        if isinstance(args[1], Tensor) and isinstance(args[3], (list, tuple)):  # (data, batch_sizes, hx, params, ...)
            data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional = args
            hx = hx if isinstance(hx, (tuple, list)) else (hx,)
            host = batch_sizes._host_array()
            t, b = (as_tensor_value(p, data.device) for p in _packed_positions(host))
            batch = int(host[0])
            padded = data.new_zeros((len(host), batch, *data.shape[1:])).index_put((t, b), data)
            mask = None if (host == batch).all() else _mask_of(host, batch, data.device)
            out, *states = _sequence(kind, padded, tuple(hx), params, has_biases, num_layers, dropout, train, bidirectional, mask, (t, b))
            return (out[t, b], *states)
        x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first = args
        hx = hx if isinstance(hx, (tuple, list)) else (hx,)
        x = x.transpose(0, 1) if batch_first else x
        out, *states = _sequence(kind, x, tuple(hx), params, has_biases, num_layers, dropout, train, bidirectional)
        return (out.transpose(0, 1) if batch_first else out, *states)
    f.__name__ = f.__qualname__ = kind
    f.__doc__ = f"{kind} over a sequence: `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`, or packed."
    return f


lstm, gru, rnn_tanh, rnn_relu = (public(method=False)(_entry(kind)) for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu"))


def _check_cell(gates: int, input: Tensor, w_ih: Tensor, w_hh: Tensor, *states: Tensor) -> None:
    """torch's errors for a cell's arguments that do not fit together."""
    size = w_hh.size(1)
    for w, name in ((w_ih, "ih"), (w_hh, "hh")):
        if w.size(0) != gates * size:
            raise RuntimeError(f"weight_{name} first dim must be {gates} * hidden_size = {gates * size}, but got {w.size(0)}")
    if input.size(1) != w_ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {w_ih.size(1)}")
    for i, state in enumerate(states):
        if state.size(0) != input.size(0):
            raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{i} batch size {state.size(0)}")
        if state.size(1) != size:
            raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {state.size(1)}, expected {size}")


@public(method=False)
def lstm_cell(input: Tensor, hx, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None) -> tuple[Tensor, Tensor]:
    """One LSTM step: (h, c)."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = hx
    _check_cell(4, input, w_ih, w_hh, h, c)
    i, f, g, o = (linear(input, w_ih, b_ih) + linear(h, w_hh, b_hh)).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@public(method=False)
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None) -> Tensor:
    """One GRU step."""
    _check_cell(3, input, w_ih, w_hh, hx)
    xr, xz, xn = linear(input, w_ih, b_ih).chunk(3, 1)
    hr, hz, hn = linear(hx, w_hh, b_hh).chunk(3, 1)
    z = (xz + hz).sigmoid()
    n = (xn + (xr + hr).sigmoid() * hn).tanh()
    return n + z * (hx - n)


@public(method=False)
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None) -> Tensor:
    """tanh(W x + b + U h + c)."""
    _check_cell(1, input, w_ih, w_hh, hx)
    return (linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh)).tanh()


@public(method=False)
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None) -> Tensor:
    """relu(W x + b + U h + c)."""
    _check_cell(1, input, w_ih, w_hh, hx)
    return (linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh)).relu()
