"""Masked tensors of data and masks."""
from __future__ import annotations

from ..._tensor import Tensor
from .core import MaskedTensor, _made

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A leaf: copies of both."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor whose gradients go to `data`."""
    made = MaskedTensor(data.detach() if isinstance(data, Tensor) else data, mask)
    return _made(data.clone(), made._masked_mask) if data.requires_grad else made
