"""scaled_dot_product_attention."""
from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core import rng
from ..._core.registry import Op, sum_to
from ..._tensor import Tensor, apply
from ...ops.random import default_generator, drawn

# One op: softmax(q k^T * scale + bias, masked) v. The compiled tier leaves fusion to XLA; long sequences and other
# platforms go to pallas_kernels (see _kernel).


def _wide(x):
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _swap(x):
    return x.swapaxes(-1, -2)


def _weights(xp, q, k, mask, scale, causal):
    scores = xp.matmul(_wide(q), _swap(_wide(k))) * np.asarray(scale, _wide(q).dtype)
    allowed = None
    if causal:
        allowed = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
    if mask is not None:
        if mask.dtype == np.bool_:
            allowed = mask if allowed is None else mask & allowed
        else:
            scores = scores + mask
    if allowed is not None:
        scores = xp.where(allowed, scores, np.asarray(-np.inf, scores.dtype))
    top = xp.max(scores, axis=-1, keepdims=True)
    if mask is not None:
        top = xp.where(xp.isfinite(top), top, xp.zeros((), top.dtype))
    e = xp.exp(scores - top)
    total = xp.sum(e, axis=-1, keepdims=True)
    return e / (xp.where(total == 0, xp.ones((), total.dtype), total) if mask is not None else total)


def _attention(xp, q, k, v, mask, drop, keep_scale, scale, causal):
    p = _weights(xp, q, k, mask, scale, causal)
    if drop is not None:
        p = p * drop * xp.asarray(keep_scale, dtype=p.dtype)
    return xp.matmul(p, _wide(v)).astype(q.dtype)


def _attention_vjp(xp, g, q, k, v, mask, drop, keep_scale, scale, causal, needs):
    p = _weights(xp, q, k, mask, scale, causal)
    g, qw, kw, vw = _wide(g), _wide(q), _wide(k), _wide(v)
    kept = 1 if drop is None else drop * xp.asarray(keep_scale, dtype=p.dtype)
    gq = gk = gv = gm = None
    if needs[2]:
        gv = sum_to(xp, xp.matmul(_swap(p * kept), g), v.shape)
    if needs[0] or needs[1] or needs[3]:
        gp = xp.matmul(g, _swap(vw)) * kept
        ps = p * gp
        gs = ps - p * xp.sum(ps, axis=-1, keepdims=True)
        factor = np.asarray(scale, gs.dtype)
        gq = sum_to(xp, xp.matmul(gs, kw) * factor, q.shape) if needs[0] else None
        gk = sum_to(xp, xp.matmul(_swap(gs), qw) * factor, k.shape) if needs[1] else None
        gm = sum_to(xp, gs, mask.shape) if needs[3] else None
    return gq, gk, gv, gm, None, None


def _shape(q, k, v, mask, drop, keep_scale, scale, causal):
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    return (*batch, q.shape[-2], v.shape[-1]), q.dtype


ATTENTION = Op("scaled_dot_product_attention", _attention, shape=_shape, vjp=_attention_vjp,
               torch_name="ScaledDotProductFlashAttentionForCpuBackward0")


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask=None, dropout_p: float = 0.0, is_causal: bool = False,
                                 scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """softmax(query key^T * scale + mask) value: (..., heads, L, E), (..., heads, S, E), (..., heads, S, Ev) to (..., heads, L, Ev).

    A boolean mask allows where True; a row that nothing is allowed for gives 0. is_causal aligns to the top left.
    """
    for t, name in ((query, "query"), (key, "key"), (value, "value")):
        if t.ndim < 2:
            raise RuntimeError("scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but got query dim: "
                               f"{query.ndim}, key dim: {key.ndim}, value dim: {value.ndim}.")
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype.name} key.dtype: "
                           f"{key.dtype.name} and value.dtype: {value.dtype.name} instead.")
    if attn_mask is not None:
        if is_causal:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
        if attn_mask.dtype is not dt.bool_ and attn_mask.dtype is not query.dtype and attn_mask.dtype is not dt.float32:
            raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                               f"{attn_mask.dtype.name} and  query.dtype: {query.dtype.name} instead.")
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        if query.shape[-3] % key.shape[-3]:
            raise RuntimeError("Number of heads in key and value must divide the number of heads in query")
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    drop = None
    if dropout_p > 0.0:
        if dropout_p > 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
        shape = (*np.broadcast_shapes(query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2])
        kind = query.dtype.np
        drop = drawn(lambda: rng.bernoulli_scalar(default_generator, shape, 1 - dropout_p, kind), query.device)
    keep_scale = 1.0 if dropout_p >= 1.0 else 1 / (1 - dropout_p)
    return apply(ATTENTION, (query, key, value, attn_mask, drop, keep_scale), (float(scale), bool(is_causal)))
