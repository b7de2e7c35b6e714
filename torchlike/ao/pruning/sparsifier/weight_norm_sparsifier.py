"""Zeros where weights are small."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...._functions import torch
from ....nn import Module
from ....nn import functional as F
from .base_sparsifier import BaseSparsifier

__all__ = ["WeightNormSparsifier"]


class WeightNormSparsifier(BaseSparsifier):
    """The share `sparsity_level` of a matrix's blocks, those of the smallest mean norm, have zeros: all of a block of `sparse_block_shape` (rows, columns), or
    the `zeros_per_block` smallest numbers of each. `norm`: 1, 2, or a function of the matrix. NotImplementedError for other norms."""

    def __init__(self, sparsity_level: float = 0.5, sparse_block_shape: tuple[int, int] = (1, 4), zeros_per_block: int | None = None,
                 norm: Callable | int | None = None) -> None:
        if zeros_per_block is None:
            zeros_per_block = math.prod(sparse_block_shape)
        if callable(norm):
            self.norm_fn = norm
        elif norm == 1:
            self.norm_fn = torch.abs
        elif norm in (None, 2):
            self.norm_fn = torch.square
        else:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        super().__init__(defaults={"sparsity_level": sparsity_level, "sparse_block_shape": sparse_block_shape, "zeros_per_block": zeros_per_block})

    def update_mask(self, module: Module, tensor_name: str, sparsity_level: float, sparse_block_shape: tuple[int, int], zeros_per_block: int,
                    **kwargs: Any) -> None:
        """Chooses the zeros by the weight as it is now, with the zeros of the mask before. ValueError for fewer zeros in a block than none, or more than its size."""
        size = math.prod(sparse_block_shape)
        if zeros_per_block > size:
            raise ValueError("Number of zeros per block cannot be more than the total number of elements in that block.")
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.data = torch.ones_like(mask)
        elif sparsity_level >= 1.0 and zeros_per_block == size:
            mask.data = torch.zeros_like(mask)
        else:
            norms = self.norm_fn(getattr(module, tensor_name))
            kept = _largest_blocks(norms, sparsity_level, sparse_block_shape)
            mask.data = kept if zeros_per_block == size else kept.logical_or(_largest_in_blocks(norms, sparse_block_shape, zeros_per_block))


def _largest_blocks(norms: Any, level: float, block: tuple[int, int]) -> Any:
    """Ones in the blocks whose mean norm is not among the smallest."""
    rows, columns = norms.shape[-2:]
    if level >= 1.0:
        return torch.zeros_like(norms)
    means = F.avg_pool2d(norms[None, None], block, block, ceil_mode=True)[0, 0] if math.prod(block) > 1 else norms
    zeros = max(0, min(means.numel() - 1, round(level * means.numel())))
    smallest = means.flatten().topk(zeros, largest=False).indices
    kept = torch.ones(means.numel(), device=norms.device).scatter(0, smallest, 0.0).reshape(means.shape)
    return kept.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:rows, :columns].contiguous()


def _largest_in_blocks(norms: Any, block: tuple[int, int], zeros: int) -> Any:
    """Ones but for the smallest numbers of each block."""
    rows, columns = norms.shape[-2:]
    more = -rows % block[0], -columns % block[1]
    padded = F.pad(norms, (0, more[1], 0, more[0]), value=math.nan)  # which is larger than any number
    down, across = padded.shape[0] // block[0], padded.shape[1] // block[1]
    blocks = padded.reshape(down, block[0], across, block[1]).transpose(1, 2).reshape(down, across, -1)
    smallest = blocks.topk(zeros, -1, largest=False).indices
    kept = torch.ones(blocks.shape, device=norms.device).scatter(-1, smallest, 0.0).reshape(down, across, *block)
    return kept.transpose(1, 2).reshape(padded.shape)[:rows, :columns]
