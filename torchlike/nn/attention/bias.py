"""Causal masks as objects, which attention recognises without building them."""
from __future__ import annotations

import enum
import warnings
from typing import Any

from torchlike._core import dtype as dt
from torchlike._public import FUNCTIONS as F
from torchlike._tensor import Tensor
from torchlike.nn import functional

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """To which corner the diagonal of a mask that is not square belongs."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """The mask `tril(ones(seq_len_q, seq_len_kv))`, or with the diagonal that ends in the lower right corner."""

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        return Tensor._make_subclass(cls, F["empty"](0))

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2)

    def _materialize(self, device: Any = None) -> Tensor:
        """The boolean mask."""
        offset = self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0
        return F["tril"](F["ones"](self.seq_len_q, self.seq_len_kv, dtype=dt.bool_, device=device or "cpu"), offset)

    def _attention(self, query, key, value, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        plain = self.variant is CausalVariant.UPPER_LEFT or self.seq_len_q == self.seq_len_kv
        return functional.scaled_dot_product_attention(query, key, value, None if plain else self._materialize(query.device), dropout_p, plain,
                                                       scale, enable_gqa)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            query, key, value, *rest = args
            mask = rest.pop(0) if rest else kwargs.pop("attn_mask")
            return mask._attention(query, key, value, *rest, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self) -> str:
        return repr(self._materialize())


def _variant(name: str, variant: CausalVariant, size: tuple) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of is_causal=True for (queries, keys)."""
    return _variant("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask in which the last query sees all keys, for (queries, keys)."""
    return _variant("causal_lower_right", CausalVariant.LOWER_RIGHT, size)
