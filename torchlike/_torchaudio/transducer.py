"""The loss of an RNN transducer (Graves 2012, https://arxiv.org/abs/1211.3711) with its gradient, for torchaudio.functional.rnnt_loss."""
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core import dtype as dt
from .._core.registry import Op
from .._custom_operator import kernel
from .._tensor import Tensor, apply
from ..library import define

_IMPOSSIBLE = -1e30  # the logarithm of a probability of zero, whose differences are numbers


def _costs(logits, targets, times, lengths, blank: int, normalize: bool):
    """Negative log-likelihoods (batch,) of logits (batch, time, length + 1, class), summed over all paths of blanks and targets.

    Cells (t, u) of one diagonal t + u follow from those of the diagonal before.
    """
    scores = jax.nn.log_softmax(logits) if normalize else logits
    batch, time, places, _ = scores.shape
    stay = scores[..., blank]
    emit = jnp.take_along_axis(scores[:, :, :-1], targets[:, None, :, None], -1)[..., 0]
    u = jnp.arange(places)
    diagonals = jnp.arange(time + places - 1)[:, None] - u  # the time of each place on a diagonal
    at = jnp.clip(diagonals, 0, time - 1)
    stay, emit = (jnp.moveaxis(x[:, at[:, :x.shape[2]], u[:x.shape[2]]], 1, 0) for x in (stay, emit))  # (diagonal, batch, place)

    def step(before, now):
        stay, emit, t = now
        waited = jnp.where(t > 0, before + stay, _IMPOSSIBLE)
        emitted = jnp.concatenate([jnp.full((batch, 1), _IMPOSSIBLE, before.dtype), before[:, :-1] + emit], 1)
        made = jnp.where((t >= 0) & (t < time), jnp.logaddexp(waited, emitted), _IMPOSSIBLE)
        return made, made
    first = jnp.full((batch, places), _IMPOSSIBLE, scores.dtype).at[:, 0].set(0)
    rest = lax.scan(step, first, (stay[:-1], emit[:-1], diagonals[1:]))[1]
    alphas, one = jnp.concatenate([first[None], rest]), jnp.arange(batch)
    last = times - 1 + lengths
    return -(alphas[last, one, lengths] + stay[last, one, lengths])


def _loss(xp, logits, targets, times, lengths, blank, clamp, normalize):
    work = logits.astype(jnp.promote_types(logits.dtype, np.float32))
    costs, pull = jax.vjp(lambda x: _costs(x, targets, times, lengths, blank, normalize), work)
    gradient = pull(jnp.ones_like(costs))[0]
    if clamp > 0:
        gradient = jnp.clip(gradient, -clamp, clamp)
    return [costs.astype(logits.dtype), gradient.astype(logits.dtype)]


_LOSS = Op("rnnt_loss", _loss, numpy=None, vjp=False, shape=lambda logits, *rest: [(logits.shape[:1], logits.dtype), (logits.shape, logits.dtype)])

define("torchaudio::rnnt_loss_forward", "(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, int blank, float clamp, "
                                        "bool fused_log_softmax) -> (Tensor, Tensor?)")


@kernel("torchaudio::rnnt_loss_forward", "default")
def rnnt_loss_forward(logits: Tensor, targets: Tensor, logit_lengths: Tensor, target_lengths: Tensor, blank: int, clamp: float,
                      fused_log_softmax: bool) -> tuple[Tensor, Tensor]:
    """(costs (batch,), their gradients for the logits)."""
    if logits.dtype not in (dt.float32, dt.float16):
        raise RuntimeError("logits must be float32 or float16 (half) type")
    for t, name in ((targets, "targets"), (logit_lengths, "logit_lengths"), (target_lengths, "target_lengths")):
        if t.dtype is not dt.int32:
            raise RuntimeError(f"{name} must be int32 type")
    if logits.dim() != 4:
        raise RuntimeError("logits must be 4-D (batch, time, target, class)")
    if targets.dim() != 2:
        raise RuntimeError("targets must be 2-D (batch, max target length)")
    for t, name in ((logit_lengths, "logit_lengths"), (target_lengths, "target_lengths")):
        if t.dim() != 1:
            raise RuntimeError(f"{name} must be 1-D")
        if t.size(0) != logits.size(0):
            raise RuntimeError(f"batch dimension mismatch between logits and {name}")
    if targets.size(0) != logits.size(0):
        raise RuntimeError("batch dimension mismatch between logits and targets")
    if not 0 <= blank < logits.size(-1):
        raise RuntimeError("blank must be within [0, logits.shape[-1])")
    if logits.size(1) != logit_lengths.max().item():
        raise RuntimeError("input length mismatch")
    if logits.size(2) != target_lengths.max().item() + 1:
        raise RuntimeError("output length mismatch")
    if targets.size(1) != target_lengths.max().item():
        raise RuntimeError("target length mismatch")
    return apply(_LOSS, (logits, targets, logit_lengths, target_lengths), (blank, clamp, fused_log_softmax))
