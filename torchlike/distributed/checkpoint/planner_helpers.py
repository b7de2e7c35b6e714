"""Items of plans, for tensors, pieces of them, and everything else."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..._tensor import Size, Tensor
from ..tensor import DTensor, Shard
from ..tensor._utils import compute_local_shape_and_global_offset
from ..tensor.placement_types import _StridedShard
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, MetadataIndex, TensorProperties, TensorStorageMetadata
from .planner import LoadItemType, ReadItem, SavePlan, TensorWriteData, WriteItem, WriteItemType

__all__ = ["create_read_items_for_chunk_list"]


def unstrided(tensor: DTensor) -> DTensor:
    """The tensor in pieces that are one block each."""
    places = tuple(Shard(p.dim) if isinstance(p, _StridedShard) else p for p in tensor.placements)
    return tensor if places == tensor.placements else tensor.redistribute(placements=places)


def here(tensor: Tensor, rank: int = 0) -> tuple[Tensor, tuple[int, ...], bool]:
    """What this rank has of a tensor, where that begins, and whether it is the first to have it."""
    if not isinstance(tensor, DTensor):
        return tensor, (0,) * tensor.ndim, rank == 0
    if any(p.is_partial() for p in tensor.placements):
        raise ValueError("Any checkpointing related operations are not supported for DTensor with partial placements!")
    tensor = unstrided(tensor)
    mesh, places = tensor.device_mesh, tensor.placements
    _, offset = compute_local_shape_and_global_offset(tensor.shape, mesh, places)
    first = all(p.is_shard() or me == 0 for p, me in zip(places, mesh.get_coordinate()))
    return tensor.to_local(), offset, first


def write_items(name: str, value: Any) -> list[WriteItem]:
    """What a rank would write of an entry: nothing of a DTensor of which it has nothing."""
    if not isinstance(value, Tensor):
        return [WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO)]
    if isinstance(value, DTensor) and value.device_mesh.get_coordinate() is None:
        return []
    local, offset, _ = here(value)
    if value.numel() and not local.numel():
        return []
    block = ChunkStorageMetadata(Size(offset), Size(local.shape))
    kind = WriteItemType.SHARD if isinstance(value, DTensor) else WriteItemType.TENSOR
    return [WriteItem(MetadataIndex(name, offset), kind, tensor_data=TensorWriteData(block, TensorProperties.create_from_tensor(local), value.size()))]


def create_read_items_for_chunk_list(fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]) -> list[ReadItem]:
    """What to read for blocks of a tensor: where each meets one of those that were written."""
    found = []
    for i, mine in enumerate(local_chunks):
        for k, written in enumerate(checkpoint_md.chunks):
            common = [(max(a, b), min(a + m, b + n)) for a, m, b, n in zip(mine.offsets, mine.sizes, written.offsets, written.sizes)]
            if all(first < end for first, end in common):
                found.append(ReadItem(LoadItemType.TENSOR, MetadataIndex(fqn, mine.offsets, i), Size([first - o for (first, _), o in zip(common, mine.offsets)]),
                                      MetadataIndex(fqn, written.offsets, k), Size([first - o for (first, _), o in zip(common, written.offsets)]),
                                      Size([end - first for first, end in common])))
    return found


def read_items(name: str, saved: TensorStorageMetadata | BytesStorageMetadata, value: Any) -> list[ReadItem]:
    """What to read for an entry of the state."""
    if isinstance(saved, BytesStorageMetadata):
        index, none = MetadataIndex(name), Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, index, none, index, none, none)]
    if not isinstance(value, Tensor):
        raise ValueError(f"Invalid checkpoint metadata for {name}, expected {BytesStorageMetadata.__name__} but found {type(saved)}")
    if isinstance(value, DTensor) and value.device_mesh.get_coordinate() is None:
        return []
    local, offset, _ = here(value)
    return create_read_items_for_chunk_list(name, saved, [ChunkStorageMetadata(Size(offset), Size(local.shape))])


def dedup_save_plans(all_plans: list[SavePlan], save_to_lowest_rank: bool = False) -> list[SavePlan]:
    """Plans in which each item is one rank's: the lowest one's, or that of the one that has the least to write so far."""
    owners: dict[MetadataIndex, list[int]] = {}
    for rank, plan in enumerate(all_plans):
        for item in plan.items:
            owners.setdefault(item.index, []).append(rank)
    sizes, chosen = [0] * len(all_plans), {}
    for index, item in _each(all_plans):
        rank = owners[index][0] if save_to_lowest_rank else min(owners[index], key=lambda r: (sizes[r], r))
        chosen[index] = rank
        sizes[rank] += item.tensor_storage_size() or 1
    return [replace(plan, items=[item for item in plan.items if chosen[item.index] == rank]) for rank, plan in enumerate(all_plans)]


def _each(plans: list[SavePlan]) -> Iterator[tuple[MetadataIndex, WriteItem]]:
    """The items of plans, each once."""
    yield from {item.index: item for plan in plans for item in plan.items}.items()
