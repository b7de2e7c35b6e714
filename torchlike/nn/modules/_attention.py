"""MultiheadAttention: softmax(Q K^T / sqrt(d)) V in several heads. Vaswani et al., 2017."""
from __future__ import annotations

from typing import Any

from torchlike._tensor import Tensor
from torchlike.autograd.grad_mode import is_grad_enabled
from torchlike.nn import functional as F
from torchlike.nn import init
from torchlike.nn.modules.linear import NonDynamicallyQuantizableLinear
from torchlike.nn.modules.module import Module
from torchlike.nn.parameter import empty_parameter


class MultiheadAttention(Module):
    """Attention over (L, N, E), or (N, L, E) with `batch_first`, or (L, E) unbatched.

    forward returns the attended values and, unless `need_weights=False`, the weights (averaged over the heads).
    """

    __constants__ = ["batch_first"]
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: Any = None, dtype: Any = None) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                             f"num_heads={num_heads} instead")
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        options = {"device": device, "dtype": dtype}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = empty_parameter(3 * embed_dim, embed_dim, **options)
            absent = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        else:
            self.q_proj_weight = empty_parameter(embed_dim, embed_dim, **options)
            self.k_proj_weight = empty_parameter(embed_dim, self.kdim, **options)
            self.v_proj_weight = empty_parameter(embed_dim, self.vdim, **options)
            absent = ("in_proj_weight",)
        for name in absent:
            self.register_parameter(name, None)
        self.register_parameter("in_proj_bias", empty_parameter(3 * embed_dim, **options) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        self.bias_k = empty_parameter(1, 1, embed_dim, **options) if add_bias_kv else None
        self.bias_v = empty_parameter(1, 1, embed_dim, **options) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        weights = (self.in_proj_weight,) if self._qkv_same_embed_dim else (self.q_proj_weight, self.k_proj_weight,
                                                                           self.v_proj_weight)
        for weight in weights:
            init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"_qkv_same_embed_dim": True, **state})

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        if isinstance(query, Tensor) and query.is_nested:
            return self._of_nested(query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights)
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = self._swapped(query, key, value)
        separate = {} if self._qkv_same_embed_dim else {
            "use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight, "k_proj_weight": self.k_proj_weight,
            "v_proj_weight": self.v_proj_weight}
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            average_attn_weights=average_attn_weights, is_causal=is_causal, **separate)
        return (output.transpose(1, 0) if swap else output), weights

    def merge_masks(self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor) -> tuple[Tensor | None, int | None]:
        """Both masks as one, and its kind, for query (N, L, E): (None, None) without a mask; 1 and key_padding_mask (N, L) alone as it is;
        2 and (N, num_heads, L, L) where there is an attn_mask of (L, L) or (N * num_heads, L, L). Their sum: boolean masks join by `or`."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        n, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(n, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(n, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(n, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2

    @staticmethod
    def _swapped(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Batch and sequence exchanged; what was one tensor stays one, so that self-attention is recognized."""
        if key is value:
            if query is key:
                query = key = value = query.transpose(1, 0)
            else:
                query, key = query.transpose(1, 0), key.transpose(1, 0)
                value = key
            return query, key, value
        return query.transpose(1, 0), key.transpose(1, 0), value.transpose(1, 0)

    def _why_no_nested(self, query: Tensor, same: bool, masked: bool) -> str:
        """Why torch has no kernel for a nested query here; empty if it has one."""
        import torchlike as torch  # backends and amp are above nn

        names = [n for n in ("in_proj_bias", "in_proj_weight") if getattr(self, n) is not None and getattr(self, n).dtype is not query.dtype]
        reasons = (
            (not torch.backends.mha.get_fastpath_enabled(), "torch.backends.mha.get_fastpath_enabled() was not True"),
            (query.dim() != 3, f"input not batched; expected query.dim() of 3 but got {query.dim()}"),
            (not same, "non-self attention was used (query, key, and value are not the same Tensor)"),
            *((True, f"dtypes of query ({query.dtype}) and self.{n} ({getattr(self, n).dtype}) don't match") for n in names),
            (self.in_proj_weight is None, "in_proj_weight was None"),
            (self.training, "training is enabled"),
            (self.num_heads % 2 != 0, "self.num_heads is not even"),
            (not self.batch_first, "batch_first was not True"),
            (self.bias_k is not None, "self.bias_k was not None"),
            (self.bias_v is not None, "self.bias_v was not None"),
            (self.add_zero_attn, "add_zero_attn was enabled"),
            (masked, "supplying both src_key_padding_mask and src_mask at the same time" + " " * 34 + "is not supported with NestedTensor input"),
            (torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled(), "autocast is enabled"),
            (is_grad_enabled() and any(t.requires_grad for t in (query, *self.parameters())),
             "grad is enabled and at least one of query or the input/output projection weights or biases requires_grad"),
        )
        return next((words for holds, words in reasons if holds), "")

    def _of_nested(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, need_weights: bool, attn_mask: Tensor | None,
                   average_attn_weights: bool) -> tuple[Tensor, Tensor | None]:
        """Attention within each part of a nested tensor: of all parts at once, padded to the longest."""
        reason = self._why_no_nested(query, query is key and key is value, key_padding_mask is not None or attn_mask is not None)
        if reason:
            raise AssertionError(f"MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit because {reason}")
        import torchlike as torch  # nested is above nn

        lengths = [part.shape[0] for part in query.unbind()]
        padded = torch.nn.utils.rnn.pad_sequence(list(query.unbind()), batch_first=True)  # all parts may be empty
        hidden = torch.arange(padded.shape[1], device=padded.device) >= torch.tensor(lengths, device=padded.device).unsqueeze(1)
        output, weights = self.forward(padded, padded, padded, hidden, need_weights, None, average_attn_weights)
        if weights is not None:
            weights = weights.masked_fill(hidden.view(len(lengths), *[1] * (weights.dim() - 3), -1, 1), 0.0)
        return torch.nested.as_nested_tensor([part[:n] for part, n in zip(output, lengths)], layout=query.layout), weights
