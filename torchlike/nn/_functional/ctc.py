"""ctc_loss: connectionist temporal classification (Graves et al. 2006)."""
from __future__ import annotations

import numpy as np
from jax import lax

from ..._arguments import as_int
from ..._call_forms import refusal
from ..._core import dtype as dt
from ..._core.registry import Op
from ..._core.value import is_tracer
from ..._tensor import Tensor, apply, as_tensor_value
from ...ops.from_data import as_tensor
from ...ops.joining import stack
from .._reduction import get_enum
from .common import not_implemented, reduction_of

# The labels are interleaved with blanks: z = (blank, l1, blank, l2, ..., blank), S = 2 * longest + 1 states. alpha[t, s]
# is the log-probability of all paths that are at state s after t + 1 frames. beta is alpha of the reversed problem.


def _scan(xp, step, first, frames):
    """All states of a recursion over the leading axis of frames."""
    if xp is not np:
        return lax.scan(lambda c, f: (lambda n: (n, n))(step(c, f)), first, frames)[1]
    states = np.empty((len(frames), *first.shape), first.dtype)
    for i, f in enumerate(frames):
        first = states[i] = step(first, f)
    return states


def _log_add(xp, *parts):
    top = parts[0]
    for p in parts[1:]:
        top = xp.maximum(top, p)
    safe = xp.where(xp.isfinite(top), top, np.zeros((), top.dtype))
    total = xp.exp(parts[0] - safe)
    for p in parts[1:]:
        total = total + xp.exp(p - safe)
    return xp.log(total) + safe


def _states(xp, targets, blank):
    """Label of each state, and whether a state may be entered from two states before: (N, S) each."""
    n, longest = targets.shape
    odd = np.arange(2 * longest + 1) % 2 == 1
    spread = xp.repeat(targets, 2, axis=1) if longest else xp.zeros((n, 0), np.int64)
    z = xp.where(odd, xp.concatenate([xp.zeros((n, 1), spread.dtype), spread], axis=1), blank)
    before = xp.concatenate([xp.full((n, 2), -1, z.dtype), z[:, :-2]], axis=1)[:, :z.shape[1]]
    return z, odd & (z != before) & (np.arange(z.shape[1]) > 1)


def _shifted(xp, a, k):
    return xp.concatenate([xp.full((a.shape[0], k), -np.inf, a.dtype), a[:, :-k]], axis=1)[:, :a.shape[1]]


def _forward(xp, frames, skip):
    """alpha for frames (T, N, S) of log-probabilities of the states' labels."""
    start = xp.where(np.arange(frames.shape[2]) == 0, np.zeros((), frames.dtype), np.asarray(-np.inf, frames.dtype))
    start = xp.broadcast_to(start, frames.shape[1:])  # "before the first frame"; the step leads to states 0 and 1
    minus = np.asarray(-np.inf, frames.dtype)

    def step(a, f):
        return _log_add(xp, a, _shifted(xp, a, 1), xp.where(skip, _shifted(xp, a, 2), minus)) + f
    return _scan(xp, step, start, frames)


def _pick(xp, table, index):
    """table (N, K), index (N, J): (N, J)."""
    return xp.take_along_axis(table, index, 1)


def _frames(xp, logp, z):
    return xp.take_along_axis(logp, xp.broadcast_to(z, (logp.shape[0], *z.shape)), 2)


def _ends(xp, states, lengths):
    """log of the two final states' sum at the last frame of each sequence; states (T, N, S)."""
    last = xp.maximum(lengths[0] - 1, 0)
    row = xp.take_along_axis(states, last[None, :, None], 0)[0]
    top = 2 * lengths[1]
    a = _pick(xp, row, top[:, None])[:, 0]
    b = _pick(xp, row, xp.maximum(top - 1, 0)[:, None])[:, 0]
    total = _log_add(xp, a, xp.where(top > 0, b, np.asarray(-np.inf, b.dtype)))
    empty = xp.where(top == 0, np.zeros((), a.dtype), np.asarray(-np.inf, a.dtype))  # no frames at all
    return xp.where(lengths[0] > 0, total, empty)


def _ctc(xp, logp, targets, lengths, blank):
    z, skip = _states(xp, targets, blank)
    return -_ends(xp, _forward(xp, _frames(xp, logp, z), skip), lengths)


def _ctc_vjp(xp, g, logp, targets, lengths, out, blank, zero_infinity):
    """As torch's: exp(logp) minus the posterior of each class, which is the gradient behind a log_softmax."""
    frames_n, classes = logp.shape[0], logp.shape[2]
    z, skip = _states(xp, targets, blank)
    frames = _frames(xp, logp, z)
    alpha = _forward(xp, frames, skip)
    # the reversed problem: time and states backwards, each sequence from its own end
    t, s = np.arange(frames_n)[:, None], np.arange(z.shape[1])
    back_t, back_s = lengths[0] - 1 - t, 2 * lengths[1][:, None] - s
    zr = _pick(xp, z, xp.maximum(back_s, 0))
    before = xp.concatenate([xp.full((z.shape[0], 2), -1, zr.dtype), zr[:, :-2]], axis=1)[:, :zr.shape[1]]
    skip_r = (s % 2 == 1) & (zr != before) & (s > 1)
    logp_r = xp.take_along_axis(logp, xp.maximum(back_t, 0)[:, :, None], 0)
    beta_r = _forward(xp, _frames(xp, logp_r, zr), skip_r)
    beta = xp.take_along_axis(beta_r, xp.maximum(back_t, 0)[:, :, None], 0)
    beta = xp.take_along_axis(beta, xp.broadcast_to(xp.maximum(back_s, 0), beta.shape), 2)
    real = (back_t >= 0)[:, :, None] & (back_s >= 0)
    joint = xp.where(real, xp.exp(alpha + beta - frames + out[:, None]), np.zeros((), logp.dtype))
    hot = (z[:, :, None] == np.arange(classes)).astype(logp.dtype)
    posterior = xp.einsum("tns,nsc->tnc", joint, hot)
    grad = xp.where((back_t >= 0)[:, :, None], (xp.exp(logp) - posterior) * g[:, None], np.zeros((), logp.dtype))
    if zero_infinity:
        grad = xp.where(xp.isinf(out)[:, None], np.zeros((), logp.dtype), grad)
    return grad, None, None


_CTC = Op("ctc_loss", lambda xp, logp, targets, lengths, blank, zero_infinity: _ctc(xp, logp, targets, lengths, blank),
          shape=lambda a, t, lengths, blank, zero_infinity: ((a.shape[1],), a.dtype), vjp=_ctc_vjp)
_CTC.loops = True


def _lengths(x, name: str) -> np.ndarray:
    if isinstance(x, Tensor):
        if x.dtype.category >= dt.FLOAT or x.dtype is dt.bool_:
            raise RuntimeError(f"{name} must be integral")
        x = x._host_array()
    return np.atleast_1d(np.asarray(x, np.int64))


def _none_negative(lengths: np.ndarray, name: str) -> None:
    if lengths.min(initial=0) < 0:
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {lengths[lengths < 0][0]} (while checking arguments for "
                           "ctc_loss_allocate_outputs)")


def _padded(targets: Tensor, lengths: np.ndarray) -> Tensor:
    """Targets as (N, longest): concatenated ones are cut apart, padded ones are cut to the longest."""
    longest = int(lengths.max()) if lengths.size else 0
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    if targets.ndim == 1:
        total = int(lengths.sum())
        if targets.numel() != total:
            raise RuntimeError(f"Expected tensor to have size {total} at dimension 0, but got size {targets.numel()} for argument #2 'targets' {where}")
        starts = np.cumsum(lengths) - lengths
        index = starts[:, None] + np.arange(longest)
        index = np.where(np.arange(longest) < lengths[:, None], index, 0)
        return targets.reshape(-1)[as_tensor_value(index, targets.device)] if total else targets.new_zeros((lengths.size, longest))
    if targets.ndim != 2:
        raise RuntimeError("targets must be 1- or 2-dimensional")
    if targets.shape[0] != lengths.size:
        raise RuntimeError(f"Expected tensor to have size {lengths.size} at dimension 0, but got size {targets.shape[0]} for argument #2 'targets' {where}")
    if targets.shape[1] < longest:
        raise RuntimeError(f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} for argument #2 'targets' "
                           f"{where}")
    return targets[:, :longest]


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths, target_lengths, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    """-log p(targets | log_probs): (T, N, C) or (T, C) log-probabilities, targets (N, S) padded or concatenated.

    'mean' divides each loss by its target's length first. zero_infinity gives 0 where no path exists.
    """
    reduction = reduction_of(None, None, reduction)
    if not (isinstance(input_lengths, Tensor) and isinstance(target_lengths, Tensor)) or blank.__class__ is not int:
        refused = refusal("ctc_loss", (log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity), {}, False)
        if refused is not None:
            raise refused
    if log_probs.dtype not in (dt.float32, dt.float64):
        raise not_implemented("ctc_loss_cpu", log_probs.dtype)
    if not log_probs.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    batched = log_probs.ndim == 3
    x = log_probs if batched else log_probs.unsqueeze(1)
    frames, n, classes = x.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if any(isinstance(lengths, Tensor) and is_tracer(lengths._current().array) for lengths in (input_lengths, target_lengths)) and targets.ndim == 2:
        lengths = stack([as_tensor(i, dtype=dt.int64).expand(n) for i in (input_lengths, target_lengths)])  # JAX asks no values
        labels, counts = targets.to(dt.int64), lengths[1].clamp_min(1).to(x.dtype)
    else:
        given, long = _lengths(input_lengths, "input_lengths"), _lengths(target_lengths, "target_lengths")
        if given.size != n:
            raise RuntimeError("input_lengths must be of size batch_size")
        if long.size != n:
            raise RuntimeError("target_lengths must be of size batch_size")
        _none_negative(long, "target_lengths")
        for i in given:
            if i > frames:
                raise RuntimeError(f"Expected input_lengths to have value at most {frames}, but got value {i} (while checking arguments for "
                                   "ctc_loss_allocate_outputs)")
        labels = _padded(targets.to(x.device, dt.int64), long)
        _none_negative(given, "input_lengths")
        lengths = as_tensor_value(np.stack([given, long]), x.device)
        counts = as_tensor_value(np.maximum(long, 1).astype(x.dtype.np), x.device)
    loss = apply(_CTC, (x, labels, lengths), (as_int(blank, "blank"), bool(zero_infinity)))
    if zero_infinity:
        loss = loss.masked_fill(loss == float("inf"), 0.0)
    if reduction == "mean":
        return (loss / counts).mean()
    return loss.sum() if reduction == "sum" else loss if batched else loss.squeeze(0)
