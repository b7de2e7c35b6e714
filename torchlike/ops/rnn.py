"""Recurrent sequences: LSTM, GRU and plain RNN, one op per layer and direction; cells as elementwise formulas.

The input projections of all steps are one product outside the loop. The loop keeps what its backward reads (gates), and
the weight gradient is one product over all steps after the backward loop. Variable lengths enter as a mask: where it is
zero the state passes through unchanged, which serves both directions.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jax import lax

from .._core.registry import Op
from .._tensor import Tensor, apply, as_tensor_value
from .joining import cat
from .matmul import linear

UNROLL = 1  # steps of lax.scan per loop iteration: more of them cost compile time (8.7 s at 1, 40 s at 8 for two layers) and gain nothing


def scan(xp, step: Callable, carry: tuple, xs: tuple, reverse: bool):
    """lax.scan over the leading axis, in NumPy or JAX."""
    if xp is not np:
        return lax.scan(step, carry, xs, reverse=reverse, unroll=min(UNROLL, xs[0].shape[0]))
    n, rows = xs[0].shape[0], []
    for t in reversed(range(n)) if reverse else range(n):
        carry, row = step(carry, tuple(None if x is None else x[t] for x in xs))
        rows.append(row)
    if reverse:
        rows.reverse()
    return carry, tuple(np.stack(column) for column in zip(*rows))


def _sigmoid(xp, x):
    return np.asarray(0.5, x.dtype) * (xp.tanh(np.asarray(0.5, x.dtype) * x) + 1)


def _keep(xp, mask, new, old):
    return new if mask is None else xp.where(mask, new, old)


def _previous(xp, first, states, reverse):
    """The state before each step."""
    return xp.concatenate([states[1:], first[None]]) if reverse else xp.concatenate([first[None], states[:-1]])


def _weight_gradient(xp, dz, before):
    """sum over steps of dz^T h."""
    return xp.matmul(dz.reshape(-1, dz.shape[-1]).T, before.reshape(-1, before.shape[-1]))


# -- LSTM ------------------------------------------------------------------------------------------------------------------


def _lstm(xp, gx, h0, c0, w, mask, reverse):
    """(hidden states, cell states, gates) of all steps: gx (T, B, 4H), w (4H, H), mask (T, B, 1) or None."""
    wt, n = w.T, h0.shape[-1]

    def step(carry, x):
        h, c = carry
        g, m = x
        z = g + xp.matmul(h, wt)
        act = _sigmoid(xp, z)
        i, f, o = act[:, :n], act[:, n:2 * n], act[:, 3 * n:]
        cell = xp.tanh(z[:, 2 * n:3 * n])
        c2 = f * c + i * cell
        h2 = o * xp.tanh(c2)
        c2, h2 = _keep(xp, m, c2, c), _keep(xp, m, h2, h)
        return (h2, c2), (h2, c2, xp.concatenate([i, f, cell, o], -1))
    _, (hs, cs, gates) = scan(xp, step, (h0, c0), (gx, mask), reverse)
    return [hs, cs, gates]


def _lstm_vjp(xp, g0, g1, h0, c0, w, mask, out0, out1, out2, reverse):
    """g0: of hidden states; g1: of cell states (only the last step's is ever nonzero)."""
    n = h0.shape[-1]
    cells_before = _previous(xp, c0, out1, reverse)

    def step(carry, x):
        dh, dc = carry
        gh, gc, gates, c, before, m = x
        i, f, cell, o = gates[:, :n], gates[:, n:2 * n], gates[:, 2 * n:3 * n], gates[:, 3 * n:]
        dh, dc = dh + gh, dc + gc
        t = xp.tanh(c)
        inner = dc + dh * o * (1 - t * t)
        dz = xp.concatenate([inner * cell * i * (1 - i), inner * before * f * (1 - f), inner * i * (1 - cell * cell), dh * t * o * (1 - o)], -1)
        if m is not None:
            dz = xp.where(m, dz, xp.zeros((), dz.dtype))
        dh2, dc2 = xp.matmul(dz, w), inner * f
        return (_keep(xp, m, dh2, dh), _keep(xp, m, dc2, dc)), (dz,)
    zero = xp.zeros_like(h0)
    (dh, dc), (dz,) = scan(xp, step, (zero, zero), (g0, g1, out2, out1, cells_before, mask), not reverse)
    return dz, dh, dc, _weight_gradient(xp, dz, _previous(xp, h0, out0, reverse)), None


def _states(gx, h0):
    return (gx.shape[0], gx.shape[1], h0.shape[-1]), gx.dtype


LSTM = Op("lstm_sequence", _lstm, vjp=_lstm_vjp, torch_name="LstmBackward0",
          shape=lambda gx, h0, c0, w, mask, reverse: [_states(gx, h0), _states(gx, h0), (gx.shape, gx.dtype)])

# -- GRU -------------------------------------------------------------------------------------------------------------------


def _gru(xp, gx, h0, w, b, mask, reverse):
    """(hidden states, gates r z n and the hidden part of n): gx (T, B, 3H)."""
    wt, n = w.T, h0.shape[-1]

    def step(carry, x):
        (h,), (g, m) = carry, x
        hw = xp.matmul(h, wt)
        if b is not None:
            hw = hw + b
        rz = _sigmoid(xp, g[:, :2 * n] + hw[:, :2 * n])
        r, z = rz[:, :n], rz[:, n:]
        new = xp.tanh(g[:, 2 * n:] + r * hw[:, 2 * n:])
        h2 = _keep(xp, m, (1 - z) * new + z * h, h)
        return (h2,), (h2, xp.concatenate([rz, new, hw[:, 2 * n:]], -1))
    _, (hs, gates) = scan(xp, step, (h0,), (gx, mask), reverse)
    return [hs, gates]


def _gru_vjp(xp, g0, h0, w, b, mask, out0, out1, reverse):
    n = h0.shape[-1]
    before = _previous(xp, h0, out0, reverse)

    def step(carry, x):
        (dh,), (gh, gates, h, m) = carry, x
        dh = dh + gh
        r, z, new, hn = (gates[:, k * n:(k + 1) * n] for k in range(4))
        dnew = dh * (1 - z) * (1 - new * new)
        dr, dz = dnew * hn * r * (1 - r), dh * (h - new) * z * (1 - z)
        dx, dhw = xp.concatenate([dr, dz, dnew], -1), xp.concatenate([dr, dz, dnew * r], -1)
        if m is not None:
            zero = xp.zeros((), dx.dtype)
            dx, dhw = xp.where(m, dx, zero), xp.where(m, dhw, zero)
        dh2 = xp.matmul(dhw, w) + dh * z
        return (_keep(xp, m, dh2, dh),), (dx, dhw)
    (dh,), (dx, dhw) = scan(xp, step, (xp.zeros_like(h0),), (g0, out1, before, mask), not reverse)
    return dx, dh, _weight_gradient(xp, dhw, before), None if b is None else xp.sum(dhw, axis=(0, 1)), None


GRU = Op("gru_sequence", _gru, vjp=_gru_vjp, torch_name="GruBackward0",
         shape=lambda gx, h0, w, b, mask, reverse: [_states(gx, h0), ((*gx.shape[:2], 4 * h0.shape[-1]), gx.dtype)])

# -- plain RNN -------------------------------------------------------------------------------------------------------------


def _rnn(xp, gx, h0, w, mask, relu, reverse):
    wt = w.T

    def step(carry, x):
        (h,), (g, m) = carry, x
        z = g + xp.matmul(h, wt)
        h2 = _keep(xp, m, xp.maximum(z, xp.zeros((), z.dtype)) if relu else xp.tanh(z), h)
        return (h2,), (h2,)
    return scan(xp, step, (h0,), (gx, mask), reverse)[1][0]


def _rnn_vjp(xp, g, h0, w, mask, out, relu, reverse):
    def step(carry, x):
        (dh,), (gh, h, m) = carry, x
        dh = dh + gh
        dz = xp.where(h > 0, dh, xp.zeros((), dh.dtype)) if relu else dh * (1 - h * h)
        if m is not None:
            dz = xp.where(m, dz, xp.zeros((), dz.dtype))
        return (_keep(xp, m, xp.matmul(dz, w), dh),), (dz,)
    (dh,), (dz,) = scan(xp, step, (xp.zeros_like(h0),), (g, out, mask), not reverse)
    return dz, dh, _weight_gradient(xp, dz, _previous(xp, h0, out, reverse)), None


RNN = Op("rnn_sequence", _rnn, vjp=_rnn_vjp, torch_name="RnnBackward0", shape=lambda gx, h0, w, mask, relu, reverse: _states(gx, h0))

# -- layers ----------------------------------------------------------------------------------------------------------------


def _total(a, b):
    return a if b is None else b if a is None else a + b


def _layer(kind: str, x: Tensor, h: tuple, weights: tuple, mask, reverse: bool):
    """One direction of one layer: (states of all steps, last states)."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    last = 0 if reverse else -1
    if kind == "lstm":
        gx = linear(x, w_ih, _total(b_ih, b_hh))
        if w_hr is not None:
            return _projected(gx, h, w_hh, w_hr, mask, reverse)
        hs, cs, _ = apply(LSTM, (gx, *h, w_hh, mask), (reverse,))
        return hs, (hs[last], cs[last])
    if kind == "gru":
        hs, _ = apply(GRU, (linear(x, w_ih, b_ih), *h, w_hh, b_hh, mask), (reverse,))
    else:
        hs = apply(RNN, (linear(x, w_ih, _total(b_ih, b_hh)), *h, w_hh, mask), (kind == "rnn_relu", reverse))
    return hs, (hs[last],)


def _projected(gx, h, w_hh, w_hr, mask, reverse):
    """LSTM with projected hidden states (Sak et al. 2014), step by step."""
    from .basic import where
    from .joining import stack
    hidden, cell = h
    n, rows = gx.shape[0], []
    for t in reversed(range(n)) if reverse else range(n):
        i, f, g, o = (gx[t] + hidden @ w_hh.t()).chunk(4, -1)
        new_cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        new_hidden = (o.sigmoid() * new_cell.tanh()) @ w_hr.t()
        if mask is not None:
            new_cell, new_hidden = where(mask[t], new_cell, cell), where(mask[t], new_hidden, hidden)
        hidden, cell = new_hidden, new_cell
        rows.append(hidden)
    return stack(rows[::-1] if reverse else rows), (hidden, cell)


def _sequence(kind: str, x: Tensor, hx: tuple, params, has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool,
              mask=None):
    """All layers over x (T, B, I); hx holds tensors of (layers * directions, B, H)."""
    from ..nn._functional.dropout import dropout as drop
    directions = 2 if bidirectional else 1
    per = len(params) // (num_layers * directions)
    finals = [[] for _ in hx]
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            p = params[k * per:(k + 1) * per]
            biases = p[2:4] if has_biases else (None, None)
            projection = p[-1] if per == (5 if has_biases else 3) else None
            ys, last = _layer(kind, x, tuple(s[k] for s in hx), (p[0], p[1], *biases, projection), mask, direction == 1)
            outs.append(ys)
            for store, state in zip(finals, last):
                store.append(state)
        x = outs[0] if directions == 1 else cat(outs, -1)
        if dropout and train and layer + 1 < num_layers:
            x = drop(x, dropout, True)
    from .joining import stack
    return (x, *(stack(f) for f in finals))


def _mask_of(batch_sizes: Tensor, batch: int) -> Tensor:
    sizes = batch_sizes._host_array()
    return as_tensor_value((np.arange(batch) < sizes[:, None])[:, :, None])


def _packed_positions(batch_sizes: np.ndarray):
    t = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    b = np.concatenate([np.arange(n) for n in batch_sizes]) if len(batch_sizes) else np.zeros(0, np.int64)
    return t, b


def _entry(kind: str):
    def f(*args):
        if isinstance(args[1], Tensor) and isinstance(args[3], (list, tuple)):  # (data, batch_sizes, hx, params, ...)
            data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional = args
            hx = hx if isinstance(hx, (tuple, list)) else (hx,)
            host = batch_sizes._host_array()
            t, b = (as_tensor_value(p) for p in _packed_positions(host))
            batch = int(host[0])
            padded = data.new_zeros((len(host), batch, *data.shape[1:])).index_put((t, b), data)
            mask = None if (host == batch).all() else _mask_of(batch_sizes, batch)
            out, *states = _sequence(kind, padded, tuple(hx), params, has_biases, num_layers, dropout, train, bidirectional, mask)
            return (out[t, b], *states)
        x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first = args
        hx = hx if isinstance(hx, (tuple, list)) else (hx,)
        x = x.transpose(0, 1) if batch_first else x
        out, *states = _sequence(kind, x, tuple(hx), params, has_biases, num_layers, dropout, train, bidirectional)
        return (out.transpose(0, 1) if batch_first else out, *states)
    f.__name__ = f.__qualname__ = kind
    f.__doc__ = f"{kind} over a sequence: `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`, or packed."
    return f


lstm, gru, rnn_tanh, rnn_relu = map(_entry, ("lstm", "gru", "rnn_tanh", "rnn_relu"))


def lstm_cell(input: Tensor, hx, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None) -> tuple:
    """One LSTM step: (h, c)."""
    h, c = hx
    i, f, g, o = (linear(input, w_ih, b_ih) + linear(h, w_hh, b_hh)).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None) -> Tensor:
    """One GRU step."""
    xr, xz, xn = linear(input, w_ih, b_ih).chunk(3, 1)
    hr, hz, hn = linear(hx, w_hh, b_hh).chunk(3, 1)
    z = (xz + hz).sigmoid()
    n = (xn + (xr + hr).sigmoid() * hn).tanh()
    return n + z * (hx - n)


def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None) -> Tensor:
    """tanh(W x + b + U h + c)."""
    return (linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh)).tanh()


def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None) -> Tensor:
    """relu(W x + b + U h + c)."""
    return (linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh)).relu()
