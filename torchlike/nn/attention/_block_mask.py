"""Attention masks by blocks: for each row of blocks those columns in which something, or everything, is allowed."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlike._core import dtype as dt
from torchlike._public import FUNCTIONS as F
from torchlike._tensor import Tensor

__all__ = ["BlockMask", "noop_mask"]


def noop_mask(batch, head, token_q, token_kv) -> Tensor:
    """Allows everything."""
    return batch.new_ones((), dtype=dt.bool_, device=batch.device)


def _sliced(batch, head, token_q, token_kv) -> Tensor:
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def to_dense(count: Tensor, columns: Tensor) -> Tensor:
    """Ones where a row of blocks lists a column: of the columns given, the first `count` of each row are valid."""
    n = columns.shape[-1]
    valid = F["arange"](n, device=columns.device) < count.unsqueeze(-1)
    out = columns.new_zeros(*columns.shape[:-1], n + 1, dtype=dt.int32)  # a place more, for what is not valid
    at = F["where"](valid, columns, n).to(dt.int64)
    return out.scatter(-1, at, 1)[..., :n].contiguous()


def to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """(count, columns) of a dense mask: the listed columns first, in order."""
    dense = dense.to(dt.int32)
    return dense.sum(-1).to(dt.int32), F["argsort"](dense, dim=-1, descending=True, stable=True).to(dt.int32)


def _transposed(count: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    return to_ordered(to_dense(count, columns).transpose(-2, -1))


_PARTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")


class BlockMask:
    """`kv_*` list, for each row of blocks, the columns of blocks that `mask_mod` decides about; `full_kv_*` those wholly allowed; `q_*` the same
    by columns."""

    def __init__(self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None,
                 full_kv_indices: Tensor | None, q_num_blocks: Tensor | None, q_indices: Tensor | None, full_q_num_blocks: Tensor | None,
                 full_q_indices: Tensor | None, BLOCK_SIZE: tuple[int, int] = (128, 128), mask_mod: Callable = noop_mask) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for word, count, columns in (("kv", full_kv_num_blocks, full_kv_indices), ("q", full_q_num_blocks, full_q_indices)):
            if (count is None) != (columns is None):
                raise AssertionError(f"full_{word}_num_blocks and full_{word}_indices must be both provided or omitted")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        given = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices, full_q_num_blocks, full_q_indices)
        self.__dict__.update(zip(_PARTS, given))

    @classmethod
    def from_kv_blocks(cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None, full_kv_indices: Tensor | None = None,
                       BLOCK_SIZE: int | tuple[int, int] = 128, mask_mod: Callable | None = None, seq_lengths: tuple[int, int] | None = None,
                       compute_q_blocks: bool = True) -> BlockMask:
        """A mask from the lists by rows; those by columns follow."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        by_column = _transposed(kv_num_blocks, kv_indices) if compute_q_blocks else (None, None)
        full_by_column = _transposed(full_kv_num_blocks, full_kv_indices) if compute_q_blocks and full_kv_indices is not None else (None, None)
        if isinstance(BLOCK_SIZE, int):
            BLOCK_SIZE = BLOCK_SIZE, BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = kv_indices.shape[-2] * BLOCK_SIZE[0], kv_indices.shape[-1] * BLOCK_SIZE[1]
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_column, *full_by_column, BLOCK_SIZE,
                   noop_mask if mask_mod is None else mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the whole mask: batch, heads, queries, keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Elements of the whole mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of the mask in blocks that are left out."""
        blocks = int(self.kv_num_blocks.sum()) + (0 if self.full_kv_num_blocks is None else int(self.full_kv_num_blocks.sum()))
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Ones where a block is listed."""
        out = to_dense(self.kv_num_blocks, self.kv_indices)
        return out if self.full_kv_indices is None else out | to_dense(self.full_kv_num_blocks, self.full_kv_indices)

    def as_tuple(self, flatten: bool = True) -> tuple:
        """Lengths, lists, block sizes and mask_mod."""
        lists = tuple(getattr(self, name) for name in _PARTS)
        if flatten:
            return (*self.seq_lengths, *lists, *self.BLOCK_SIZE, self.mask_mod)
        return (self.seq_lengths, *lists, self.BLOCK_SIZE, self.mask_mod)

    def _changed(self, change: Callable[[Tensor], Tensor], seq_lengths: tuple[int, int], mask_mod: Callable) -> BlockMask:
        parts = [None if p is None else change(p) for p in (getattr(self, name) for name in _PARTS[:4])]
        return BlockMask.from_kv_blocks(*parts, self.BLOCK_SIZE, mask_mod, seq_lengths, self.q_indices is not None)

    def __getitem__(self, index: Any) -> BlockMask:
        """The part for some of batch, heads and rows of blocks; its mask_mod, which knows nothing of that, is gone."""
        index = index if isinstance(index, tuple) else (index,)
        whole = (*index, slice(None), slice(None), slice(None))[:3]
        whole = tuple((slice(i + n, i + n + 1) if i < 0 else slice(i, i + 1)) if isinstance(i, int) else i for i, n in zip(whole, self.kv_num_blocks.shape))
        return self._changed(lambda p: p[whole], self.seq_lengths, _sliced)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left part for other lengths."""
        rows, columns = (-(-n // size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))

        def cut(count: Tensor, listed: Tensor) -> tuple[Tensor, Tensor]:
            listed = listed[:, :, :rows, :columns]
            count = count[:, :, :rows].clamp(max=columns)
            return (listed < count.unsqueeze(-1)).sum(-1).to(dt.int32), listed
        parts = cut(self.kv_num_blocks, self.kv_indices)
        full = (None, None) if self.full_kv_indices is None else cut(self.full_kv_num_blocks, self.full_kv_indices)
        return BlockMask.from_kv_blocks(*parts, *full, self.BLOCK_SIZE, self.mask_mod, (new_q_len, new_kv_len), self.q_indices is not None)

    def to(self, device: Any) -> BlockMask:
        """The lists on another device."""
        parts = [None if p is None else p.to(device) for p in (getattr(self, name) for name in _PARTS)]
        return BlockMask(self.seq_lengths, *parts, self.BLOCK_SIZE, self.mask_mod)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture for each batch element and head, `limit` at most: full, half and empty squares of at most grid_size."""
        dense = self.to_dense().numpy()
        rows, columns = dense.shape[-2:]
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        step = [max(1, -(-n // limit)) if limit > 0 else 1 for n, limit in zip((rows, columns), most)]

        def square(part: np.ndarray) -> str:
            share = part.mean()
            return ("█" if share == 1 else " " if share == 0 else "░") * 2
        out = []
        for k, at in enumerate(itertools.product(*map(range, dense.shape[:-2]))):
            if k == limit:
                out += ["...", "To print out more, set BlockMask.to_string(limit=N)",
                        "You can also index (BlockMask[batch, head]) to choose a specific batch or head"]
                break
            lines = ["".join(square(dense[at][r:r + step[0], c:c + step[1]]) for c in range(0, columns, step[1])) + "\n" for r in range(0, rows, step[0])]
            out.append(f"{at}\n" + "".join(lines))
        return "\n".join(out)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        lists = "".join(f"    {name}={None if getattr(self, name) is None else getattr(self, name).shape},\n" for name in _PARTS)
        return (f"BlockMask(\n{lists}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n"
                f"    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)")
