"""Which part of a tensor a rank has."""
from __future__ import annotations

from collections.abc import Sequence

from ..device_mesh import DeviceMesh
from .placement_types import Placement, Shard, share


def compute_local_shape_and_global_offset(global_shape: Sequence[int], mesh: DeviceMesh,
                                          placements: Sequence[Placement]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape of this rank's piece of a tensor, and where it begins."""
    shape, offset = list(global_shape), [0] * len(global_shape)
    for dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            d = placement.dim
            shape[d], begin = share(shape[d], mesh.size(dim), mesh.get_coordinate()[dim])
            offset[d] += begin
    return tuple(shape), tuple(offset)
