"""Nested tensors that show one flat tensor, as libraries make them: torchrl's trajectories."""
from __future__ import annotations

import math

from .._core.dtype import int64
from .._public import FUNCTIONS
from .._tensor import Tensor
from ._tensor import STRIDED, NestedTensor


def _rows(sizes: Tensor) -> list[list[int]]:
    if sizes.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {sizes.dtype.short}")
    return sizes.tolist()


def _nested_compute_contiguous_strides_offsets(nested_size: Tensor) -> tuple[Tensor, Tensor]:
    """(strides (N, D), offsets (N,)) of N parts of the sizes (N, D), one after the other. RuntimeError unless they are int64."""
    strides, offsets, end = [], [], 0
    for sizes in _rows(nested_size):
        strides.append([math.prod(sizes[d + 1:]) for d in range(len(sizes))])
        offsets.append(end)
        end += math.prod(sizes)
    return tuple(FUNCTIONS["tensor"](x, dtype=int64) for x in (strides, offsets))


def _nested_view_from_buffer(self: Tensor, nested_size: Tensor, nested_strides: Tensor, offsets: Tensor) -> NestedTensor:
    """A nested tensor of views of a flat tensor: sizes (N, D), strides (N, D), offsets (N,). RuntimeError where it is not flat."""
    if self.dim() != 1:
        raise RuntimeError("The input buffer must be flat")
    begin = self.storage_offset()
    parts = [self.as_strided(size, stride, begin + at) for size, stride, at in zip(_rows(nested_size), _rows(nested_strides), offsets.tolist())]
    return NestedTensor(parts, STRIDED)
