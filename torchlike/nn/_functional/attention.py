"""scaled_dot_product_attention."""
from __future__ import annotations

import math

import numpy as np

from ... import _autocast
from ..._arguments import real
from ..._core import dtype as dt
from ..._core import rng
from ..._core.arrays import cast, sum_to
from ..._core.aval import broadcast_shapes
from ..._core.grad_mode import mode
from ..._core.layout import like
from ..._core.registry import Op
from ..._public import named
from ..._tensor import Tensor, apply, as_tensor_value
from ...ops.matmul import of_columns
from ...ops.random import default_generator, drawn
from ...ops.reductions import summed
from . import attention_host, attention_tiles
from .common import need, not_implemented
from .sdp_backends import SDPBackend, allows_fused, allows_math, is_allowed

# softmax(q k^T * scale + bias, masked) v, as four operations: the formula, whose fusion is left to XLA; the formula that GPUs and TPUs
# replace by the kernels of pallas_kernels (accelerated.py); and for long sequences those kernels, or tiles on the CPU (attention_tiles.py).


def _wide(x):
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


def _swap(x):
    return x.swapaxes(-1, -2)


def _groups(q, k) -> int:
    """How many heads of q share one of k (enable_gqa); 1 also where k broadcasts."""
    return q.shape[-3] // k.shape[-3] if len(q.shape) > 2 and len(k.shape) > 2 and 1 < k.shape[-3] < q.shape[-3] else 1


def _spread(xp, x, groups: int):
    return x if groups == 1 else xp.repeat(x, groups, -3)


def _gathered(xp, g, shape, groups: int):
    """The adjoint of _spread and of broadcasting."""
    if groups > 1:
        g = xp.sum(g.reshape(*g.shape[:-3], -1, groups, *g.shape[-2:]), axis=-3)
    return sum_to(xp, g, shape)


def _by_rows(xp, x, y):
    """x y^T. With few rows of x, XLA's CPU backend is slower at a product with a transposition (benchmarks/one_row.py)."""
    return xp.matmul(x, _swap(y)) if xp is np else xp.einsum("...qd,...kd->...qk", x, y)


def _weights(xp, q, k, mask, scale, causal):
    scores = _by_rows(xp, _wide(q), _wide(k))
    scores = scores * np.asarray(scale, scores.dtype)
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
    if not scores.shape[-1]:
        return scores
    top = np.maximum.reduce(scores, -1, None, None, True) if xp is np else xp.max(scores, axis=-1, keepdims=True)
    if mask is not None:
        top = xp.where(xp.isfinite(top), top, xp.zeros((), top.dtype))
    e = xp.exp(scores - top)
    total = summed(xp, e, -1, True)
    return e / (xp.where(total == 0, xp.ones((), total.dtype), total) if mask is not None else total)


def _attention(xp, q, k, v, mask, drop, keep_scale, scale, causal):
    groups = _groups(q, k)
    if xp is np and attention_host.pays(q, k):
        return attention_host.forward(q, k, v, mask, drop, keep_scale, scale, causal, groups)[0]
    k, v = _spread(xp, k, groups), _spread(xp, v, groups)
    p = _weights(xp, q, k, mask, scale, causal)
    if drop is not None:
        p = p * drop * xp.asarray(keep_scale, dtype=p.dtype)
    return cast(xp, xp.matmul(p, _wide(v)), q.dtype)


def _attention_vjp(xp, g, q, k, v, mask, drop, keep_scale, scale, causal, needs, plan):
    groups, k_shape, v_shape = _groups(q, k), k.shape, v.shape
    if xp is np and attention_host.pays(q, k):
        return *_backward_on_host(g, q, k, v, mask, drop, keep_scale, scale, causal, needs), None, None
    k, v = _spread(xp, k, groups), _spread(xp, v, groups)
    p = _weights(xp, q, k, mask, scale, causal)
    g, qw, kw, vw = _wide(g), _wide(q), _wide(k), _wide(v)
    kept = 1 if drop is None else drop * xp.asarray(keep_scale, dtype=p.dtype)
    gq = gk = gv = gm = None
    if needs[2]:
        gv = _gathered(xp, of_columns(xp, p * kept, g, plan), v_shape, groups)
    if needs[0] or needs[1] or needs[3]:
        gp = _by_rows(xp, g, vw) * kept
        ps = p * gp
        gs = ps - p * summed(xp, ps, -1, True)
        factor = np.asarray(scale, gs.dtype)
        gq = sum_to(xp, xp.matmul(gs, kw) * factor, q.shape) if needs[0] else None
        gk = _gathered(xp, of_columns(xp, gs, qw, plan) * factor, k_shape, groups) if needs[1] else None
        gm = sum_to(xp, gs, mask.shape) if needs[3] else None
    return gq, gk, gv, gm, None, None


def _backward_on_host(g, q, k, v, mask, drop, keep_scale, scale, causal, needs, g_top=None):
    groups = _groups(q, k)
    gq, gk, gv, gm = attention_host.backward(g, q, k, v, mask, drop, keep_scale, scale, causal, groups, needs, g_top)
    gk, gv = (None if x is None else _gathered(np, x, like.shape, groups) for x, like in ((gk, k), (gv, v)))
    return None if gq is None else sum_to(np, gq, q.shape), gk, gv, None if gm is None else sum_to(np, gm, mask.shape)


def _shape(q, k, v, mask, drop, keep_scale, scale, causal):
    batch = broadcast_shapes(broadcast_shapes(q.shape[:-2], k.shape[:-2]), v.shape[:-2])
    return (*batch, q.shape[-2], v.shape[-1]), q.dtype


_TORCH_NAME = "ScaledDotProductFlashAttentionForCpuBackward0"
ATTENTION = Op("scaled_dot_product_attention", _attention, shape=_shape, vjp=_attention_vjp, torch_name=_TORCH_NAME)
ATTENTION_ANYWHERE = Op("attention", _attention, shape=lambda q, k, v, *rest: ((*q.shape[:-1], v.shape[-1]), q.dtype), vjp=_attention_vjp, torch_name=_TORCH_NAME)
ATTENTION.cheap_derivative = ATTENTION_ANYWHERE.cheap_derivative = True  # torch's kernel computes the probabilities twice as well


def _tiled(xp, q, k, v, mask, scale, causal):
    if xp is np:
        return attention_host.forward(q, k, v, mask, None, None, scale, causal, _groups(q, k))
    return attention_tiles.forward(q, k, v, mask, scale, causal)


def _tiled_vjp(xp, g0, q, k, v, mask, out0, out1, out2, scale, causal, needs, g1=None, g2=None):
    # what a second derivative asks of the greatest scores and of the sums is one thing, as both are read as their logarithm's sum
    if xp is np:
        return _backward_on_host(g0, q, k, v, mask, None, None, scale, causal, needs, g1)
    return attention_tiles.backward(g0, g1, q, k, v, mask, out0, out1, out2, scale, causal, needs)


def _tiled_shape(q, k, v, mask, scale, causal):
    of_rows = q.shape[:-1], dt.float32 if q.dtype.itemsize == 2 else q.dtype
    return [((*q.shape[:-1], v.shape[-1]), q.dtype), of_rows, of_rows]


TILED_ATTENTION = Op("tiled_attention", _tiled, shape=_tiled_shape, vjp=_tiled_vjp, torch_name=_TORCH_NAME)
TILED_ATTENTION.private, TILED_ATTENTION.edge_order = 2, (0, 1, 2)


def fused(xp, q, k, v, mask, scale, causal):
    """The kernels of pallas_kernels: no (L, S) array in memory; heads of k and v may be shared by several of q."""
    if xp is np:
        return _fused_numpy(q, k, v, mask, scale, causal)
    from pallas_kernels import attention  # imports Pallas only where a kernel runs
    hidden = {} if mask is None else {"mask" if mask.dtype == np.bool_ else "bias": mask}
    return attention(q if scale >= 0 else -q, k, v, causal=causal, scale=abs(scale), **hidden)


def _fused_numpy(q, k, v, mask, scale, causal):
    return _attention(np, q, k, v, mask, None, None, scale, causal)


FUSED_ATTENTION = Op("fused_attention", fused, shape=lambda q, k, v, mask, scale, causal: ((*q.shape[:-1], v.shape[-1]), q.dtype),
                     numpy=_fused_numpy, torch_name=_TORCH_NAME)
FUSED_ATTENTION.edge_order = 0, 1, 2


def can_fuse(q: Tensor, k: Tensor, v: Tensor, mask) -> bool:
    """Whether a fused kernel takes tensors of these dtypes and shapes, and may."""
    a, b = q._value.aval, k._value.aval
    if a.dtype.category != dt.FLOAT or not (a.numel and b.numel) or k.shape[:-2] != v.shape[:-2]:
        return False
    if a.ndim != b.ndim or a.shape[:-3] != b.shape[:-3] or (a.ndim > 2 and a.shape[-3] % b.shape[-3]):
        return False
    if mask is not None and mask.dtype is not dt.bool_ and mask.dtype is not a.dtype:
        return False
    return allows_fused()


def _check(query, key, value, attn_mask, dropout_p, is_causal) -> None:
    for i, (t, name) in enumerate(((query, "query"), (key, "key"), (value, "value")), 1):
        need(t, "scaled_dot_product_attention", name, i)
    if query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
        raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
                           f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead.")
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype.c_name} key.dtype: "
                           f"{key.dtype.c_name} and value.dtype: {value.dtype.c_name} instead.")
    if query.dtype.category < dt.FLOAT:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: float != {query.dtype.c_name}")
    if query.dtype.is_complex:
        raise not_implemented("softmax_lastdim_kernel_impl", query.dtype)
    batch = list(query.shape[:-2])
    if query.shape[-1] != key.shape[-1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: {[*batch[-1:], query.shape[-1]]} but got: "
                           f"{[*batch[-1:], key.shape[-1]]}.")
    if key.shape[-2] != value.shape[-2]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: {[*batch[-1:], key.shape[-2]]} but got: "
                           f"{[*batch[-1:], value.shape[-2]]}.")
    if attn_mask is not None:
        fused = is_allowed(SDPBackend.FLASH_ATTENTION) if query.device.type == "cpu" else allows_fused()
        if is_causal and (query.ndim != 4 or dropout_p > 0.0 or not fused):  # torch's fused kernel takes both
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
        if attn_mask.dtype is not dt.bool_ and attn_mask.dtype is not query.dtype and attn_mask.dtype is not dt.float32:
            raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                               f"{attn_mask.dtype.c_name} and  query.dtype: {query.dtype.c_name} instead.")
        broadcast_shapes((*batch, query.shape[-2], key.shape[-2]), tuple(attn_mask.shape))


def _causal_too(mask: Tensor, queries: int, keys: int) -> Tensor:
    """A mask that also hides the keys after each query."""
    after = as_tensor_value(np.arange(keys) > np.arange(queries)[:, None]).to(mask.device)
    return mask & ~after if mask.dtype is dt.bool_ else mask + mask.new_zeros(after.shape).masked_fill(after, -math.inf)


@_autocast.wrap
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask=None, dropout_p: float = 0.0, is_causal: bool = False,
                                 scale: float | None = None, enable_gqa: bool = False) -> Tensor:
    """softmax(query key^T * scale + mask) value: (..., heads, L, E), (..., heads, S, E), (..., heads, S, Ev) to (..., heads, L, Ev).

    A boolean mask allows where True; a row that nothing is allowed for gives 0. is_causal aligns to the top left.
    With enable_gqa several heads of query share one of key and value. Long sequences and accelerators run fused kernels.
    """
    _check(query, key, value, attn_mask, dropout_p, is_causal)
    dropout_p = real(dropout_p, "scaled_dot_product_attention", "dropout_p")
    if attn_mask is not None and is_causal:
        attn_mask, is_causal = _causal_too(attn_mask, query.shape[-2], key.shape[-2]), False
    if enable_gqa and (query.shape[-3] % key.shape[-3] or query.shape[-3] % value.shape[-3]):
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    if dropout_p > 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else real(scale, "scaled_dot_product_attention", "scale")
    same_heads = query.shape[:-2] == key.shape[:-2]
    fusible = dropout_p <= 0.0 and (enable_gqa or same_heads) and can_fuse(query, key, value, attn_mask)
    trains = mode.enabled and (query.requires_grad or key.requires_grad or value.requires_grad)
    if fusible and (not allows_math() or attention_tiles.pays(query.shape[-2], key.shape[-2], bool(is_causal), trains)):
        given, statics = (query, key, value, attn_mask), (float(scale), bool(is_causal))
        made = apply(TILED_ATTENTION, given, statics)[0] if query.device.type == "cpu" else apply(FUSED_ATTENTION, given, statics)
        if query.ndim != 4:
            named(made, "UnsafeViewBackward0" if made.ndim > 2 else "MmBackward0")
        return _like_query(made, query, attn_mask)
    if not allows_math():
        raise RuntimeError("No available kernel. Aborting execution." if allows_fused() else
                           "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math kernel "
                           "and the fused kernels.")
    if enable_gqa and not fusible:
        key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
    drop = None
    if dropout_p > 0.0:
        shape = (*broadcast_shapes(query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2])
        kind = query.dtype.np
        drop = drawn(lambda: rng.bernoulli_scalar(default_generator, shape, 1 - dropout_p, kind), query.device, shape, kind)
    keep_scale = 1.0 if dropout_p >= 1.0 else 1 / (1 - dropout_p)
    made = apply(ATTENTION_ANYWHERE if fusible else ATTENTION, (query, key, value, attn_mask, drop, keep_scale), (float(scale), bool(is_causal)))
    if not (fusible and query.ndim == 4):  # then it is matrix products to torch
        named(made, "UnsafeViewBackward0" if made.ndim > 2 else "MmBackward0")
    return made if drop is not None else _like_query(made, query, attn_mask)


def _like_query(made: Tensor, query: Tensor, mask: Tensor | None) -> Tensor:
    """In torch's fused kernels, those for 4 dimensions, a result lies in memory as its query does."""
    if mask is not None and (mask.ndim == 3 or mask.requires_grad):
        return made
    if query._layout is not None and query.ndim == 4 and made.shape == query.shape and query.stride(-1) == 1:
        made._layout = like(query._layout)
    return made
