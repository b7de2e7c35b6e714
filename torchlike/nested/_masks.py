"""Nested tensors of what a mask keeps of padded sequences: vendored transformer encoders make them."""
from __future__ import annotations

from .._core import dtype as dt
from .._tensor import Tensor
from ._tensor import STRIDED, NestedTensor


def _lengths(t: Tensor, mask: Tensor) -> tuple[list[int], bool]:
    """How many elements each row keeps, and whether they are its first ones."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError("Expected mask to be of ScalarType Bool, but got " + mask.dtype.short + " instead.")
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if t.shape[:2] != mask.shape:
        raise RuntimeError("Mask size should match input size")
    kept = mask.detach().cpu().numpy()
    return kept.sum(1).tolist(), bool((kept[:, 1:] <= kept[:, :-1]).all())


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Whether each row of a mask (B, L) keeps the first elements of t (B, L, D), without gaps."""
    return _lengths(t, mask)[1]


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> NestedTensor:
    """The first elements of each row of t (B, L, D), as many as the mask (B, L) keeps there. RuntimeError where it keeps others, unless `mask_check` is off."""
    lengths, aligned = _lengths(t, mask)
    if mask_check and not aligned:
        raise RuntimeError("Mask must be left-aligned without gaps")
    return NestedTensor([row[:n] for row, n in zip(t.unbind(0), lengths)], STRIDED)
