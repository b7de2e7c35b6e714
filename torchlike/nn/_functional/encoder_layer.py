"""A transformer's encoder layer, and its attention, as one call for inference: what copies of PyTorch's layers call where nothing needs a gradient."""
from __future__ import annotations

from ..._core import dtype as dt
from ..._core.history import warn
from ..._public import FUNCTIONS, called
from ..._tensor import Tensor
from ...ops.matmul import linear
from .activation import gelu, relu
from .attention import scaled_dot_product_attention
from .normalization import layer_norm
from .softmax import softmax


def _allowed(mask: Tensor, mask_type: int | None, scores: tuple) -> Tensor:
    """Which scores count, of a mask that is True where one does not. Its type: 0 of queries and keys, 1 of batches and keys, 2 of the scores' shape."""
    if mask.dtype is not dt.bool_:
        warn("Converting mask without torch.bool dtype to bool; this will negatively affect performance. Prefer to use a boolean mask directly.", once=True)
        mask = mask.to(dt.bool_)
    if mask_type not in (0, 1, 2):
        raise RuntimeError("Mask Type should be defined" if mask_type is None else
                           "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)")
    batch, _, queries, keys = scores
    wanted, shown = (((queries, keys), "(L, L)"), ((batch, keys), "(B, L)"), (scores, "(B, num_heads, L, L)"))[mask_type]
    if tuple(mask.shape) != wanted:
        raise RuntimeError(f"For mask_type == {mask_type} mask shape should be {shown}")
    return ~(mask[:, None, None] if mask_type == 1 else mask)


def _native_multi_head_attention(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor,
                                 proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True,
                                 average_attn_weights: bool = True, mask_type: int | None = None) -> tuple[Tensor, Tensor | None]:
    """(B, L, E) three times -> (B, L, E), and, where they are needed, weights (B, L, L) or of each head (B, H, L, L). `mask` is True where nothing
    is looked at, see `_allowed`; a row without anything to look at gives NaN."""
    if query.dim() != 3:
        raise RuntimeError(f"expected 3-D `query`, got {query.dim()}-D tensor")
    if not query.shape == key.shape == value.shape:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if query.shape[2] != embed_dim:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {query.shape[2]}")
    if embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")
    if tuple(qkv_weight.shape) != (3 * embed_dim, embed_dim):
        raise RuntimeError(f"expected `qkv_weight` of shape {[3 * embed_dim, embed_dim]}, got {list(qkv_weight.shape)}")
    parts = (linear(query, qkv_weight, qkv_bias).chunk(3, -1) if query is key is value else
             [linear(x, w, b) for x, w, b in zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3))])
    q, k, v = [x.unflatten(-1, (num_head, embed_dim // num_head)).transpose(1, 2) for x in parts]
    allowed = None if mask is None else _allowed(mask, mask_type, (*q.shape[:3], k.shape[2]))
    if need_weights or allowed is not None:  # the other function gives zeros in rows without anything to look at
        scores = q * (embed_dim // num_head) ** -0.5 @ k.transpose(-2, -1)
        weights = softmax(scores if allowed is None else scores.masked_fill(~allowed, float("-inf")), -1)
        found = weights @ v
        weights = None if not need_weights else weights.mean(1) if average_attn_weights else weights
    else:
        found, weights = scaled_dot_product_attention(q, k, v), None
    return linear(found.transpose(1, 2).flatten(2), proj_weight, proj_bias), weights


def _transformer_encoder_layer_fwd(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor,
                                   use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor,
                                   norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor,
                                   mask: Tensor | None = None, mask_type: int | None = None) -> Tensor:
    """(B, L, E) -> (B, L, E): attention and a network of two layers, each added to what it reads; norms before them or after the sums."""
    def attend(x: Tensor) -> Tensor:
        return _native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, False, mask_type)[0]

    def forward(x: Tensor) -> Tensor:
        return linear((gelu if use_gelu else relu)(linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return layer_norm(x, (embed_dim,), weight, bias, eps)
    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    if norm_first:
        x = src + attend(norm(src, *first))
        return x + forward(norm(x, *second))
    x = norm(src + attend(src), *first)
    return norm(x + forward(x), *second)


FUNCTIONS.update({f.__name__: called(f) for f in (_native_multi_head_attention, _transformer_encoder_layer_fwd)})
