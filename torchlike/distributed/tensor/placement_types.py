"""How a tensor lies along one dimension of a mesh: in pieces, whole everywhere, or as terms still to be combined."""
from __future__ import annotations

import dataclasses

from ..._public import FUNCTIONS
from ..._tensor import Tensor

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Shard, Replicate or Partial."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each rank holds a piece (of dimension `dim`)."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each rank holds the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the ranks' tensors are still to be combined (by `reduce_op`)."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


def pieces(size: int, parts: int) -> list[int]:
    """The lengths into which a dimension is cut: equal ones, of which the last may be shorter or empty."""
    step = -(-size // parts)
    return [max(min(step, size - step * i), 0) for i in range(parts)]


def share(size: int, parts: int, rank: int) -> tuple[int, int]:
    """How long the piece of a rank is, and where it begins."""
    sizes = pieces(size, parts)
    return sizes[rank], sum(sizes[:rank])


@dataclasses.dataclass(frozen=True)
class Shard(Placement):
    """Each rank holds a piece of dimension `dim`."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """How long the piece of a rank is, and where it begins."""
        return share(curr_local_size, num_chunks, rank)

    def _local_shard_size_and_offset(self, curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """The older name of local_shard_size_and_offset (transformers)."""
        return share(curr_local_size, num_chunks, rank)

    def _split_tensor(self, tensor: Tensor, num_chunks: int, *, with_padding: bool = True, contiguous: bool = True) -> tuple[list[Tensor], list[int]]:
        """The pieces of a tensor, as many as there are ranks. `with_padding`: all as long as the first, by zeros behind, and by how many each."""
        if self.dim > tensor.ndim:
            raise AssertionError(f"Sharding dim {self.dim} greater than tensor ndim {tensor.ndim}")
        sizes = pieces(tensor.shape[self.dim], num_chunks)
        parts = list(tensor.split(sizes, self.dim))
        if contiguous:
            parts = [part.contiguous() for part in parts]
        if not with_padding:
            return parts, []
        missing = [sizes[0] - n for n in sizes]
        behind = [0, 0] * (tensor.ndim - self.dim - 1) + [0]
        return [FUNCTIONS["constant_pad_nd"](part, [*behind, n]) if n else part for part, n in zip(parts, missing)], missing

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclasses.dataclass(frozen=True)
class _StridedShard(Shard):
    """Each rank holds a piece of every one of `split_factor` equal blocks of a dimension: what cutting pieces again, over an earlier dimension of the
    mesh, leaves a rank of the whole."""

    split_factor: int = dataclasses.field(kw_only=True)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclasses.dataclass(frozen=True)
class Replicate(Placement):
    """Each rank holds the whole."""

    def __str__(self) -> str:
        return "R"


@dataclasses.dataclass(frozen=True)
class Partial(Placement):
    """Each rank holds a term; `reduce_op` makes the whole of them."""

    reduce_op: str = "sum"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"
