"""multi_head_attention_forward: projections, masks and attention in several heads (Vaswani et al. 2017)."""
from __future__ import annotations

import math

from ..._core import dtype as dt
from ..._core.history import warn
from ..._tensor import Tensor
from ...ops.joining import cat
from ...ops.matmul import baddbmm, bmm, linear
from .attention import scaled_dot_product_attention
from .dropout import dropout
from .padding import pad

# -- arguments ---------------------------------------------------------------------------------------------------------------


def _demand(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _mha_shape_check(query: Tensor, key: Tensor, value: Tensor, key_padding_mask, attn_mask, num_heads: int) -> bool:
    """Whether the query is a batch; AssertionError where the ranks do not fit."""
    rank = query.dim()
    _demand(rank in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    word = "batched" if rank == 3 else "unbatched"
    _demand(key.dim() == rank and value.dim() == rank, f"For {word} ({rank}-D) `query`, expected `key` and `value` to be {rank}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively")
    if key_padding_mask is not None:
        _demand(key_padding_mask.dim() == rank - 1, f"For {word} ({rank}-D) `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
                f"{key_padding_mask.dim()}-D tensor instead")
    if attn_mask is not None:
        _demand(attn_mask.dim() in (2, 3), f"For {word} ({rank}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead")
        if rank == 2 and attn_mask.dim() == 3:
            want = (num_heads, query.shape[0], key.shape[0])
            _demand(tuple(attn_mask.shape) == want, f"Expected `attn_mask` shape to be {want} but got {attn_mask.shape}")
    return rank == 3


def _none_or_dtype(input: Tensor | None) -> dt.dtype | None:
    """The dtype of a tensor that may be missing."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(mask: Tensor | None, mask_name: str, other_type: dt.dtype | None, other_name: str, target_type: dt.dtype,
                    check_other: bool = True) -> Tensor | None:
    """A mask as numbers to add to scores: -inf where a boolean mask is True."""
    if mask is None:
        return None
    _demand(mask.dtype is dt.bool_ or mask.is_floating_point(), f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.")
    if mask.is_floating_point():
        return mask
    return mask.new_zeros(mask.shape, dtype=target_type).masked_fill(mask, -math.inf)


# -- projections -------------------------------------------------------------------------------------------------------------


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    """Queries, keys and values from one weight (3 E, E); tensors that are the same are projected together."""
    e = q.size(-1)
    if k is v and q is k:
        return list(linear(q, w, b).chunk(3, -1))
    if k is v:
        b_q, b_kv = (None, None) if b is None else b.split([e, 2 * e])
        w_q, w_kv = w.split([e, 2 * e])
        return [linear(q, w_q, b_q), *linear(k, w_kv, b_kv).chunk(2, -1)]
    biases = (None, None, None) if b is None else b.chunk(3)
    return [linear(x, wx, bx) for x, wx, bx in zip((q, k, v), w.chunk(3), biases)]


def _in_projection(q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, b_q: Tensor | None = None,
                   b_k: Tensor | None = None, b_v: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values from a weight each."""
    e = q.size(-1)
    for w, x, name in ((w_q, q, "query"), (w_k, k, "key"), (w_v, v, "value")):
        _demand(tuple(w.shape) == (e, x.size(-1)), f"expecting {name} weights shape of {(e, x.size(-1))}, but got {w.shape}")
    for b, name in ((b_q, "query"), (b_k, "key"), (b_v, "value")):
        _demand(b is None or tuple(b.shape) == (e,), f"expecting {name} bias shape of {(e,)}, but got {None if b is None else b.shape}")
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _projected(query, key, value, weight, bias, separate, weights):
    if not separate:
        _demand(weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        return _in_projection_packed(query, key, value, weight, bias)
    for w, letter in zip(weights, "qkv"):
        _demand(w is not None, f"use_separate_proj_weight is True but {letter}_proj_weight is None")
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return _in_projection(query, key, value, *weights, *biases)


def _mask_3d(mask: Tensor | None, batch: int, heads: int, target: int, source: int) -> Tensor | None:
    if mask is None:
        return None
    if mask.dim() == 2:
        want = (target, source)
        if tuple(mask.shape) != want:
            raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {want}.")
        return mask.unsqueeze(0)
    want = (batch * heads, target, source)
    if mask.dim() != 3:
        raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")
    if tuple(mask.shape) != want:
        raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be {want}.")
    return mask


def _static(given: Tensor, batch: int, heads: int, size: int, name: str) -> Tensor:
    for i, want in ((0, batch * heads), (2, size)):
        _demand(given.size(i) == want, f"expecting {name}.size({i}) of {want}, but got {given.size(i)}")
    return given


# -- attention ---------------------------------------------------------------------------------------------------------------


def multi_head_attention_forward(
        query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
        in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
        out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
        q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
        static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """(L, N, E), (S, N, E), (S, N, E) to ((L, N, E), weights); without N for single sequences.

    Masks: boolean ones hide where True, float ones are added to the scores. weights: (N, L, S), or (N, heads, L, S) when not
    averaged, or None without need_weights (then scaled_dot_product_attention does the work).
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    if key_padding_mask is not None:
        for i, want in enumerate((key.shape[1], key.shape[0])):
            _demand(key_padding_mask.shape[i] == want, f"Expected key_padded_mask.shape[{i}] to be {want}, but got {key_padding_mask.shape[i]}")
    target, batch, embed = query.shape
    source = key.shape[0]
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                           "`generate_square_subsequent_mask` to create this mask.")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the hint says the same, and quicker
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        is_causal = is_causal and key_padding_mask is None
    _demand(embed == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}")
    size = embed // num_heads
    _demand(size * num_heads == embed, f"embed_dim {embed} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _demand(key.shape[:2] == value.shape[:2], f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    else:
        _demand(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, use_separate_proj_weight, (q_proj_weight, k_proj_weight, v_proj_weight))
    attn_mask = _mask_3d(attn_mask, batch, num_heads, target, source)

    extra = 0  # columns added behind the keys
    if bias_k is not None and bias_v is not None:
        _demand(static_k is None, "bias cannot be added to static key.")
        _demand(static_v is None, "bias cannot be added to static value.")
        k, v = cat([k, bias_k.repeat(1, batch, 1)]), cat([v, bias_v.repeat(1, batch, 1)])
        extra += 1
    else:
        _demand(bias_k is None, "bias_k must be None")
        _demand(bias_v is None, "bias_v must be None")

    def by_head(x):
        return x.reshape(x.shape[0], batch * num_heads, size).transpose(0, 1)
    q = by_head(q)
    k = by_head(k) if static_k is None else _static(static_k, batch, num_heads, size, "static_k")
    v = by_head(v) if static_v is None else _static(static_v, batch, num_heads, size, "static_v")
    if add_zero_attn:
        zeros = k.new_zeros((batch * num_heads, 1, size))
        k, v = cat([k, zeros], 1), cat([v, zeros], 1)
        extra += 1
    if extra:
        attn_mask = None if attn_mask is None else pad(attn_mask, (0, extra))
        key_padding_mask = None if key_padding_mask is None else pad(key_padding_mask, (0, extra))
    source = k.size(1)
    if key_padding_mask is not None:
        _demand(tuple(key_padding_mask.shape) == (batch, source), f"expecting key_padding_mask shape of {(batch, source)}, but got "
                f"{key_padding_mask.shape}")
        hidden = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, source)
        attn_mask = hidden if attn_mask is None else attn_mask + hidden
    if not training:
        dropout_p = 0.0

    weights = None
    if need_weights:
        _demand(not (is_causal and attn_mask is None), "FIXME: is_causal not implemented for need_weights")
        scaled = q * math.sqrt(1.0 / size)
        scores = bmm(scaled, k.transpose(-2, -1)) if attn_mask is None else baddbmm(attn_mask, scaled, k.transpose(-2, -1))
        weights = scores.softmax(-1)
        if dropout_p > 0.0:
            weights = dropout(weights, p=dropout_p)
        out = bmm(weights, v).transpose(0, 1).reshape(target * batch, embed)
        weights = weights.view(batch, num_heads, target, source)
        if average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            weights = weights.squeeze(0)
    else:
        if attn_mask is not None:
            attn_mask = attn_mask.unsqueeze(0) if attn_mask.size(0) == 1 else attn_mask.reshape(batch, num_heads, attn_mask.size(1), source)
        heads = (x.reshape(batch, num_heads, x.size(1), size) for x in (q, k, v))
        out = scaled_dot_product_attention(*heads, attn_mask, dropout_p, is_causal)
        out = out.permute(2, 0, 1, 3).reshape(batch * target, embed)
    out = linear(out, out_proj_weight, out_proj_bias).view(target, batch, out_proj_weight.size(0))
    return (out if batched else out.squeeze(1)), weights
