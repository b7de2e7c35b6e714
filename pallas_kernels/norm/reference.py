"""Normalisation over the last dimension in plain JAX, differentiable by JAX itself."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax


class Operands(NamedTuple):
    """x and residual (R, W, D); weight and bias (W, D). Row (r, w) uses weight row w (W = 1: one weight for all)."""

    x: jax.Array
    residual: jax.Array | None
    weight: jax.Array | None
    bias: jax.Array | None


@dataclass(frozen=True)
class Case:
    repeats: int  # R
    rows: int  # W
    columns: int  # D
    dtype: str
    centred: bool  # LayerNorm subtracts the mean, RMSNorm does not
    eps: float
    residual: bool
    weight: bool
    bias: bool
    interpret: bool = False


def forward(case: Case, operands: Operands) -> tuple[jax.Array, jax.Array, jax.Array | None, jax.Array]:
    """y, x + residual (both (R, W, D)), mean ((R, W), None unless centred) and 1 / deviation (R, W)."""
    if case.rows == 1 and operands.x.ndim == 3:
        # XLA's CPU backend sums over rows 6 times slower when a dimension of size 1 stands between.
        outs = forward(case, Operands(*(None if a is None else a.reshape(-1, case.columns) for a in operands)))
        return tuple(None if a is None else a[:, None] for a in outs)
    x = operands.x if operands.residual is None else operands.x + operands.residual
    wide = jnp.promote_types(x.dtype, jnp.float32)
    centre, mean = x.astype(wide), None
    if case.centred:
        mean = centre.mean(-1)
        centre = centre - mean[..., None]
    inverse = lax.rsqrt((centre * centre).mean(-1) + jnp.asarray(case.eps, wide))
    y = centre * inverse[..., None]
    if operands.weight is not None:
        y = y * operands.weight.astype(wide)
    if operands.bias is not None:
        y = y + operands.bias.astype(wide)
    return y.astype(case.dtype), x, mean, inverse


def group(x: jax.Array, groups: int, weight: jax.Array | None, bias: jax.Array | None, eps: float) -> jax.Array:
    """Group normalisation of (N, C, ...) with the weights left per channel: on the CPU 2.5 times quicker in training
    than spreading them over (groups, columns) as the kernel wants."""
    wide = jnp.promote_types(x.dtype, jnp.float32)
    centre = x.astype(wide).reshape(x.shape[0], groups, -1)
    centre = centre - centre.mean(-1, keepdims=True)
    y = centre * lax.rsqrt((centre * centre).mean(-1, keepdims=True) + jnp.asarray(eps, wide))
    y = y.reshape(x.shape)
    channel = lambda a: a.astype(wide).reshape(-1, *(1,) * (x.ndim - 2))
    if weight is not None:
        y = y * channel(weight)
    if bias is not None:
        y = y + channel(bias)
    return y.astype(x.dtype)


def backward(
    case: Case,
    x: jax.Array,
    weight: jax.Array | None,
    mean: jax.Array | None,
    inverse: jax.Array,
    grad: jax.Array,
    grad_sum: jax.Array | None,
):
    """Gradients of x (which is the residual's too), weight and bias (W, D) in float32, from `forward`'s residuals.

    `grad_sum` is the gradient of the second output.
    """
    if case.rows == 1 and x.ndim == 3:
        flat = [None if a is None else a[:, 0] for a in (x, mean, inverse, grad, grad_sum)]
        change, dweight, dbias = backward(case, flat[0], weight, *flat[1:])
        return change[:, None], *(None if a is None else a[None] for a in (dweight, dbias))
    wide = inverse.dtype
    normal = x.astype(wide)
    if case.centred:
        normal = normal - mean[..., None]
    normal = normal * inverse[..., None]
    grad = grad.astype(wide)
    scaled = grad if weight is None else grad * weight.astype(wide)
    change = scaled - normal * (scaled * normal).mean(-1, keepdims=True)
    if case.centred:
        change = change - scaled.mean(-1, keepdims=True)
    change = change * inverse[..., None]
    if grad_sum is not None:
        change = change + grad_sum.astype(wide)
    dweight = (grad * normal).sum(0) if case.weight else None
    dbias = grad.sum(0) if case.bias else None
    return change.astype(case.dtype), dweight, dbias
