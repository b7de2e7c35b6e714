"""Several arrays of several ranks in one exchange of messages: gathering pieces, and summing gradients into pieces."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import arrays
from .._counting import tell
from ..process_group import ProcessGroup


def gathered(mine: Sequence[np.ndarray], shapes: Sequence[Sequence[tuple[int, ...]]], group: ProcessGroup) -> list[list[np.ndarray]]:
    """`shapes[r]`: those of rank r's arrays. All ranks' arrays."""
    if group.size() == 1:
        return [list(mine)]
    packed = np.concatenate([np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in mine])
    sizes = [[int(np.prod(shape, dtype=int)) * a.itemsize for shape, a in zip(of_rank, mine)] for of_rank in shapes]
    likes = [np.broadcast_to(np.uint8(0), (sum(s),)) for s in sizes]
    tell("c10d._allgather_base_")
    arrived = arrays.all_gather(packed, likes, group.rank(), group.exchange("all_gather_into_tensor"))
    return [[part.copy().view(a.dtype).reshape(shape) for part, a, shape in zip(np.split(flat, np.cumsum(s)[:-1]), mine, of_rank)]
            for flat, s, of_rank in zip(arrived, sizes, shapes)]


def summed_pieces(parts: Sequence[Sequence[np.ndarray]], group: ProcessGroup) -> list[np.ndarray]:
    """`parts[r]`: this rank's terms for the pieces of rank r, of one dtype. The sums of all ranks' terms for this rank's pieces."""
    mine = parts[group.rank()]
    if group.size() == 1:
        return list(mine)
    flat = [np.concatenate([a.reshape(-1) for a in of_rank]) for of_rank in parts]
    tell("c10d._reduce_scatter_base_")
    total = arrays.reduce_scatter(flat, "SUM", group.rank(), group.exchange("reduce_scatter_tensor"))
    return [part.reshape(a.shape) for part, a in zip(np.split(total, np.cumsum([a.size for a in mine])[:-1]), mine)]


def summed(terms: Sequence[np.ndarray], group: ProcessGroup) -> list[np.ndarray]:
    """The sums of all ranks' arrays, of one dtype."""
    if group.size() == 1:
        return list(terms)
    flat = np.concatenate([a.reshape(-1) for a in terms])
    tell("c10d.allreduce_")
    total = arrays.all_reduce(flat, "SUM", group.size(), group.rank(), group.exchange("all_reduce"))
    return [part.reshape(a.shape) for part, a in zip(np.split(total, np.cumsum([a.size for a in terms])[:-1]), terms)]
