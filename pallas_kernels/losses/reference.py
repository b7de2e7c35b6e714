"""Cross-entropy of index targets from a few numbers per row: log-sum-exp, the target's logit, a weighted sum."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Case:
    rows: int
    classes: int
    dtype: str
    weighted: bool
    smoothing: float
    ignore_index: int
    reduction: str
    interpret: bool = False


def statistics(case: Case, logits: jax.Array, target: jax.Array, class_weight: jax.Array | None):
    """(N,) log-sum-exp, target's logit, and sum of (weighted) logits (None without smoothing), in float32 or wider.

    A target that is neither a class nor ignored makes its logit NaN.
    """
    wide = jnp.promote_types(logits.dtype, jnp.float32)
    lse = jax.nn.logsumexp(logits.astype(wide), axis=-1)
    index = _index(case, target)
    picked = jnp.take_along_axis(logits, index[:, None], axis=1, mode="fill", fill_value=jnp.nan)[:, 0].astype(wide)
    total = None
    if case.smoothing:
        total = (logits.astype(wide) if class_weight is None else logits.astype(wide) * class_weight).sum(-1)
    return lse, picked, total


def _index(case: Case, target: jax.Array) -> jax.Array:
    kept = jnp.where(target == case.ignore_index, 0, target)
    return jnp.where(kept < 0, case.classes, kept)  # negative indices would count from the end


def row_weights(case: Case, target: jax.Array, class_weight: jax.Array | None, dtype) -> jax.Array:
    """(N,) weight of each row: its class's weight, 0 where ignored."""
    kept = target != case.ignore_index
    if class_weight is None:
        return kept.astype(dtype)
    chosen = jnp.take(class_weight.astype(dtype), _index(case, target), mode="fill", fill_value=jnp.nan)
    return jnp.where(kept, chosen, 0)


def divisor(case: Case, target: jax.Array, class_weight: jax.Array | None, dtype) -> jax.Array:
    """What "mean" divides by: the sum of the rows' weights."""
    return row_weights(case, target, class_weight, dtype).sum() if case.reduction == "mean" else jnp.ones((), dtype)


def losses(case: Case, lse, picked, total, target, class_weight) -> jax.Array:
    """(N,) losses before the reduction."""
    weight = row_weights(case, target, class_weight, lse.dtype)
    loss = jnp.where(weight == 0, 0, weight * (lse - picked))
    if case.smoothing:
        mass = case.classes if class_weight is None else class_weight.astype(lse.dtype).sum()
        smooth = jnp.where(target == case.ignore_index, 0, mass * lse - total)
        loss = (1 - case.smoothing) * loss + case.smoothing / case.classes * smooth
    return loss


def logits_gradient(case: Case, logits, lse, target, class_weight, scale) -> jax.Array:
    """(N, V) gradient of sum(scale * losses), `scale` (N,) or scalar; in the type of lse."""
    wide = lse.dtype
    weight = row_weights(case, target, class_weight, wide)
    scale = jnp.broadcast_to(scale, lse.shape).astype(wide)
    chance = jnp.exp(logits.astype(wide) - lse[:, None])
    hit = jnp.arange(case.classes, dtype=target.dtype) == target[:, None]
    hard = weight * scale * (1 - case.smoothing)
    if not case.smoothing:
        return hard[:, None] * (chance - hit)
    soft = jnp.where(target == case.ignore_index, 0, scale * (case.smoothing / case.classes))
    each = jnp.ones((), wide) if class_weight is None else class_weight.astype(wide)
    mass = case.classes if class_weight is None else each.sum()
    return (hard + soft * mass)[:, None] * chance - hard[:, None] * hit - soft[:, None] * each


def reduce(case: Case, loss: jax.Array, denominator: jax.Array) -> jax.Array:
    if case.reduction == "none":
        return loss
    return loss.sum() / denominator
