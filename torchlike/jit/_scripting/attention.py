"""Attention of several heads and transformer layers in TorchScript. Each function is compiled in place of one of torch.nn's."""
# ruff: noqa: UP006, UP035, UP045, A002  (the types as TorchScript calls them, the arguments as PyTorch does)
from __future__ import annotations

import math
from types import FunctionType
from typing import Optional, Tuple

from ... import nn
from ..._tensor import Tensor
from ...nn import functional as F
from .operators import aten

_BOOL = 11  # the number of the type


def _as_scores(mask: Optional[Tensor], dtype: int) -> Optional[Tensor]:
    """A mask as what is added to scores."""
    if mask is None:
        return None
    if mask.dtype == _BOOL:
        return aten.masked_fill(aten.zeros_like(mask, dtype=dtype), mask, float("-inf"))
    return mask


def multi_head_attention_forward(
        query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Optional[Tensor],
        in_proj_bias: Optional[Tensor], bias_k: Optional[Tensor], bias_v: Optional[Tensor], add_zero_attn: bool, dropout_p: float,
        out_proj_weight: Tensor, out_proj_bias: Optional[Tensor], training: bool = True, key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True, attn_mask: Optional[Tensor] = None, use_separate_proj_weight: bool = False,
        q_proj_weight: Optional[Tensor] = None, k_proj_weight: Optional[Tensor] = None, v_proj_weight: Optional[Tensor] = None,
        static_k: Optional[Tensor] = None, static_v: Optional[Tensor] = None, average_attn_weights: bool = True,
        is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
    batched = query.dim() == 3
    if not batched:
        query = query.unsqueeze(1)
        key = key.unsqueeze(1)
        value = value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    target, batch, embed = query.shape
    source = key.size(0)
    if embed != embed_dim_to_check:
        raise RuntimeError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    hidden = _as_scores(key_padding_mask, query.dtype)
    mask: Optional[Tensor] = None
    causal = is_causal and key_padding_mask is None and not need_weights
    if not causal:
        mask = _as_scores(attn_mask, query.dtype)
    size = embed // num_heads
    if size * num_heads != embed:
        raise RuntimeError(f"embed_dim {embed} not divisible by num_heads {num_heads}")

    bq: Optional[Tensor] = None
    bk: Optional[Tensor] = None
    bv: Optional[Tensor] = None
    if in_proj_bias is not None:
        bq, bk, bv = in_proj_bias.chunk(3)
    if use_separate_proj_weight:
        assert q_proj_weight is not None, "use_separate_proj_weight is True but q_proj_weight is None"
        assert k_proj_weight is not None, "use_separate_proj_weight is True but k_proj_weight is None"
        assert v_proj_weight is not None, "use_separate_proj_weight is True but v_proj_weight is None"
        q = aten.linear(query, q_proj_weight, bq)
        k = aten.linear(key, k_proj_weight, bk)
        v = aten.linear(value, v_proj_weight, bv)
    else:
        assert in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        wq, wk, wv = in_proj_weight.chunk(3)
        q = aten.linear(query, wq, bq)
        k = aten.linear(key, wk, bk)
        v = aten.linear(value, wv, bv)

    if mask is not None:
        if mask.dim() == 2:
            if mask.size(0) != target or mask.size(1) != source:
                raise RuntimeError(f"The shape of the 2D attn_mask is {mask.shape}, but should be {(target, source)}.")
            mask = mask.unsqueeze(0)
        elif mask.dim() != 3 or mask.size(0) != batch * num_heads or mask.size(1) != target or mask.size(2) != source:
            raise RuntimeError(f"The shape of the 3D attn_mask is {mask.shape}, but should be {(batch * num_heads, target, source)}.")
    extra = 0
    if bias_k is not None and bias_v is not None:
        k = aten.cat([k, bias_k.repeat(1, batch, 1)])
        v = aten.cat([v, bias_v.repeat(1, batch, 1)])
        extra += 1
    q = q.reshape(target, batch * num_heads, size).transpose(0, 1)
    if static_k is None:
        k = k.reshape(k.size(0), batch * num_heads, size).transpose(0, 1)
    else:
        k = static_k
    if static_v is None:
        v = v.reshape(v.size(0), batch * num_heads, size).transpose(0, 1)
    else:
        v = static_v
    if add_zero_attn:
        zeros = aten.zeros([batch * num_heads, 1, size], dtype=k.dtype, device=k.device)
        k = aten.cat([k, zeros], 1)
        v = aten.cat([v, zeros], 1)
        extra += 1
    if extra > 0:
        if mask is not None:
            mask = aten.pad(mask, [0, extra])
        if hidden is not None:
            hidden = aten.pad(hidden, [0, extra])
    source = k.size(1)
    if hidden is not None:
        if hidden.size(0) != batch or hidden.size(1) != source:
            raise RuntimeError(f"expecting key_padding_mask shape of {(batch, source)}, but got {hidden.shape}")
        hidden = hidden.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, source)
        if mask is None:
            mask = hidden
        else:
            mask = mask + hidden
    p = dropout_p if training else 0.0

    if need_weights:
        scaled = q * math.sqrt(1.0 / float(size))
        if mask is None:
            scores = aten.bmm(scaled, k.transpose(-2, -1))
        else:
            scores = aten.baddbmm(mask, scaled, k.transpose(-2, -1))
        weights = aten.softmax(scores, -1)
        if p > 0.0:
            weights = aten.dropout(weights, p, True)
        out = aten.bmm(weights, v).transpose(0, 1).reshape(target * batch, embed)
        out = aten.linear(out, out_proj_weight, out_proj_bias).view(target, batch, out_proj_weight.size(0))
        weights = weights.view(batch, num_heads, target, source)
        if average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return out.squeeze(1), weights.squeeze(0)
        return out, weights
    if mask is not None:
        if mask.size(0) == 1:
            mask = mask.unsqueeze(0)
        else:
            mask = mask.reshape(batch, num_heads, mask.size(1), source)
    out = aten.scaled_dot_product_attention(q.reshape(batch, num_heads, target, size), k.reshape(batch, num_heads, source, size),
                                            v.reshape(batch, num_heads, source, size), mask, p, causal)
    out = out.permute(2, 0, 1, 3).reshape(batch * target, embed)
    out = aten.linear(out, out_proj_weight, out_proj_bias).view(target, batch, out_proj_weight.size(0))
    return (out if batched else out.squeeze(1)), None


def _attention(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
               attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
    swap = self.batch_first and query.dim() == 3
    if swap:
        query = query.transpose(1, 0)
        key = key.transpose(1, 0)
        value = value.transpose(1, 0)
    out, weights = F.multi_head_attention_forward(
        query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
        self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
        self.k_proj_weight, self.v_proj_weight, None, None, average_attn_weights, is_causal)
    return (out.transpose(1, 0) if swap else out), weights


def _encoder(self, src: Tensor, mask: Optional[Tensor] = None, src_key_padding_mask: Optional[Tensor] = None, is_causal: Optional[bool] = None) -> Tensor:
    causal = is_causal if is_causal is not None else False
    out = src
    for layer in self.layers:
        out = layer(out, mask, src_key_padding_mask, causal)
    if self.use_nested_tensor:
        if src_key_padding_mask is not None and mask is None and src.dim() == 3 and not self.training and self._drops_padding(src):
            padded = src_key_padding_mask.to(11)  # where all padding is at the end, nothing is computed for it
            at_the_end = aten.all(aten.eq(padded, aten.cumsum(padded.to(3), 1) > 0))
            out = aten.masked_fill(out, aten.unsqueeze(aten.bitwise_and(padded, at_the_end), -1), 0.0)
    if self.norm is not None:
        out = self.norm(out)
    return out


def _drops_padding(self, src: Tensor) -> bool:
    return not (aten.is_grad_enabled() and (src.requires_grad or self.layers[0].linear1.weight.requires_grad or self.layers[0].self_attn.in_proj_weight.requires_grad))


def _decoder(self, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor] = None, memory_mask: Optional[Tensor] = None,
             tgt_key_padding_mask: Optional[Tensor] = None, memory_key_padding_mask: Optional[Tensor] = None, tgt_is_causal: Optional[bool] = None,
             memory_is_causal: bool = False) -> Tensor:
    causal = tgt_is_causal if tgt_is_causal is not None else False
    out = tgt
    for layer in self.layers:
        out = layer(out, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal, memory_is_causal)
    if self.norm is not None:
        out = self.norm(out)
    return out


def methods() -> dict[FunctionType, FunctionType]:
    """What is compiled in place of which method."""
    return {nn.MultiheadAttention.forward: _attention, nn.TransformerEncoder.forward: _encoder, nn.TransformerEncoder._drops_padding: _drops_padding,
            nn.TransformerDecoder.forward: _decoder}
