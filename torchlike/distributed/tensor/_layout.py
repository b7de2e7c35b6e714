"""Where the pieces of a tensor lie, and how they get from one layout to another."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..._tensor import Tensor
from ..device_mesh import DeviceMesh
from ._moves import Exchange, Gather, Piece, Reduce, ReduceScatter, Terms
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard, pieces

Placements = tuple[Placement, ...]


def checked(ndim: int, mesh: DeviceMesh, placements: Sequence[Placement] | None) -> Placements:
    """Placements by default, with dimensions counted from the front."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError("`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
                         f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}.")
    if len({p.reduce_op for p in placements if isinstance(p, Partial)}) > 1:
        raise ValueError(f"Mixed reduce types in {placements}: all Partial placements must combine by one operation")
    found = []
    for p in placements:
        if isinstance(p, Shard) and p.dim < 0:
            p = dataclasses.replace(p, dim=p.dim + ndim)
        if isinstance(p, Shard) and p.dim >= ndim:
            raise AssertionError(f"Sharding dim {p.dim} greater than tensor ndim {ndim}")
        found.append(p)
    return tuple(found)


def extent(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], dim: int, before: int | None = None) -> int:
    """How much of a dimension this rank has, by the placements along the first `before` dimensions of the mesh."""
    n = shape[dim]
    for i, p in enumerate(placements[:before]):
        if p.is_shard(dim):
            n = pieces(n, mesh.size(i))[mesh.get_coordinate()[i]]
    return n


def local_shape(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> tuple[int, ...]:
    """The shape of this rank's piece; of a rank outside of the mesh (0,)."""
    if mesh.get_coordinate() is None:
        return (0,)
    return tuple(extent(shape, mesh, placements, d) for d in range(len(shape)))


def _disturbed(old: Placements, new: Placements) -> list[int]:
    """The dimensions of the mesh that have to move: those that change, and those that cut what such a one cuts into pieces."""
    found = {i for i, (p, q) in enumerate(zip(old, new)) if p != q}
    for i in range(len(old)):
        if i in found:
            cut = {p.dim for p in (old[i], new[i]) if isinstance(p, Shard)}
            found |= {j for j in range(i + 1, len(old)) if any(isinstance(p, Shard) and p.dim in cut for p in (old[j], new[j]))}
    return sorted(found)


def _regrouped(local: Tensor, dim: int, outer: int, inner: int) -> Tensor:
    """A dimension of `outer` times `inner` equal parts, with the parts in the other order."""
    shape = tuple(local.shape)
    if shape[dim] % (outer * inner):
        raise NotImplementedError(f"torchlike: a dimension of {shape[dim]} elements does not divide into {outer} blocks of {inner} equal pieces")
    parted = local.reshape(*shape[:dim], outer, inner, shape[dim] // (outer * inner), *shape[dim + 1:])
    return parted.transpose(dim, dim + 1).reshape(shape)


def moved(local: Tensor, shape: Sequence[int], mesh: DeviceMesh, old: Placements, new: Placements) -> Tensor:
    """This rank's local tensor under new placements; differentiable."""
    if old == new or mesh.get_coordinate() is None:
        return local
    now, dims = list(old), _disturbed(old, new)
    for i in reversed(dims):
        p, q, group = now[i], new[i], mesh.get_group(i)
        if isinstance(p, Shard):
            n = extent(shape, mesh, now, p.dim, i)
            others = {x.dim for x in (*now[:i], *now[i + 1:], *new[:i], *new[i + 1:]) if isinstance(x, Shard)}
            plain = type(p) is Shard and type(q) is Shard
            if plain and p != q and not others & {p.dim, q.dim}:
                local, now[i] = Exchange.apply(local, p.dim, q.dim, n, group), q
            else:
                local, now[i] = Gather.apply(local, p.dim, n, group), Replicate()
                if isinstance(p, _StridedShard):
                    local = _regrouped(local, p.dim, group.size(), p.split_factor)
    for i in dims:
        p, q, group = now[i], new[i], mesh.get_group(i)
        if isinstance(q, _StridedShard):
            local = Reduce.apply(local, p.reduce_op, group) if isinstance(p, Partial) else local
            local = Piece.apply(_regrouped(local, q.dim, q.split_factor, group.size()), q.dim, group)
        elif isinstance(p, Partial):
            if isinstance(q, Shard):
                local = ReduceScatter.apply(local, p.reduce_op, q.dim, group)
            elif p != q:
                local = Reduce.apply(local, p.reduce_op, group)
        elif isinstance(q, Shard) and p != q:
            local = Piece.apply(local, q.dim, group)
        elif isinstance(q, Partial):
            local = Terms.apply(local, q.reduce_op, group)
    return local
