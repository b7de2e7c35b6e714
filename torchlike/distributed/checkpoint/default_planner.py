"""How a state is laid out in a checkpoint, where a program does not say otherwise."""
from __future__ import annotations

import io
import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ..._tensor import Tensor
from ...ops.creation import empty
from ...serialization import load, save
from ..tensor import DTensor
from ._nesting import flatten, put
from .metadata import BytesStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .planner_helpers import dedup_save_plans, here, read_items, unstrided, write_items

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan", "create_default_local_load_plan",
           "create_default_local_save_plan"]


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """All that a rank has of a flat state."""
    return SavePlan([item for name, value in state_dict.items() for item in write_items(name, value)])


def create_default_global_save_plan(all_plans: list[SavePlan], rewrite_index_hints: bool = True) -> tuple[list[SavePlan], Metadata]:
    """The plans, whose indices say which block of a tensor each is, and what the checkpoint then has."""
    entries: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            if item.type is WriteItemType.BYTE_IO:
                entries[item.index.fqn] = BytesStorageMetadata()
            else:
                data = item.tensor_data
                blocks = entries.setdefault(item.index.fqn, TensorStorageMetadata(data.properties, data.size, [])).chunks
                if rewrite_index_hints:
                    item = replace(item, index=MetadataIndex(item.index.fqn, item.index.offset, len(blocks)))
                blocks.append(data.chunk)
            items.append(item)
        plans.append(replace(plan, items=items))
    return plans, Metadata(entries)


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """What a rank reads into a flat state. RuntimeError for an entry that the checkpoint lacks if `strict`, ValueError for one of another size."""
    items = []
    for name, value in state_dict.items():
        saved = metadata.state_dict_metadata.get(name)
        if saved is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        if isinstance(saved, TensorStorageMetadata) and isinstance(value, Tensor) and saved.size != value.size():
            raise ValueError(f"Size mismatch between saved {saved.size} and current: {value.size()} for {name}")
        items += read_items(name, saved, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are."""
    return all_plans


def _create_default_local_metadata(state_dict: dict[str, Any]) -> Metadata:
    """What a checkpoint of one rank's state would have."""
    return create_default_global_save_plan([create_default_local_save_plan(state_dict, True)])[1]


def _validate_global_plan(global_plan: list[SavePlan], metadata: Metadata) -> None:
    """ValueError where the blocks of a tensor do not make it up."""
    for name, saved in metadata.state_dict_metadata.items():
        if isinstance(saved, TensorStorageMetadata) and not _made_up(saved):
            raise ValueError(f"Failed to validate global plan: the blocks of {name}, {saved.chunks}, do not make up a tensor of {list(saved.size)}")


def _made_up(saved: TensorStorageMetadata) -> bool:
    inside = all(0 <= o and o + n <= m for block in saved.chunks for o, n, m in zip(block.offsets, block.sizes, saved.size))
    apart = all(any(a + m <= b or b + n <= a for a, m, b, n in zip(x.offsets, x.sizes, y.offsets, y.sizes))
                for i, x in enumerate(saved.chunks) for y in saved.chunks[:i] if len(x.offsets))
    return inside and apart and sum(math.prod(block.sizes) for block in saved.chunks) == saved.size.numel()


def _blocks(state: dict[str, Any]) -> dict[str, Any]:
    """A flat state in which all pieces are one block each."""
    return {name: unstrided(value.detach()) if isinstance(value, DTensor) else value for name, value in state.items()}


class DefaultSavePlanner(SavePlanner):
    """`flatten_state_dict`: nested dicts are opened, else each key of the state is one entry. What several ranks have is written by the one that has least to
    write, with `dedup_save_to_lowest_rank` by the lowest. `lookup_object` and `transform_object` are for classes derived from it."""

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, dedup_replicated_tensors: bool | None = None,
                 dedup_save_to_lowest_rank: bool = False, enable_plan_caching: bool = False) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank, self.mappings = dedup_save_to_lowest_rank, {}

    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False) -> None:
        """Begin to save a state."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten(state_dict)
        self.state_dict, self.is_coordinator = _blocks(state_dict), is_coordinator

    def create_local_plan(self) -> SavePlan:
        """All that this rank has."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        self.plan = replace(plan, planner_data=self.mappings) if self.flatten_state_dict else plan
        return self.plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Each item is one rank's; the checkpoint keeps the paths in the nested state."""
        plans, metadata = create_default_global_save_plan(dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank))
        if self.flatten_state_dict:
            metadata = replace(metadata, planner_data={name: path for plan in reversed(plans) for name, path in plan.planner_data.items()})
        _validate_global_plan(plans, metadata)
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """The plan as it is."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """The piece of a tensor, or an object as `torch.save` writes it."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """This rank's piece of a tensor, or an object."""
        value = self.state_dict[index.fqn]
        return here(value)[0] if isinstance(value, Tensor) else value

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written for it."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        data = io.BytesIO()
        save(object, data)
        return data


class DefaultLoadPlanner(LoadPlanner):
    """`allow_partial_load`: entries that the checkpoint lacks stay as they are. `lookup_tensor` and `transform_tensor` are for classes derived from it."""

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors, self.allow_partial_load = flatten_state_dict, flatten_sharded_tensors, allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False) -> None:
        """Begin to load into a state."""
        self.original_state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator
        if self.flatten_state_dict:
            flat, self.mappings = flatten(state_dict)
            missing = set() if metadata is None else set(metadata.state_dict_metadata) - set(flat)
            older = flatten(state_dict, dicts_open=False) if missing else ({}, {})
            if missing & set(older[0]):
                flat, self.mappings = older
        else:
            flat = dict(state_dict)
        self.state_dict = _blocks(flat)
        self._others = [(flat[name], t) for name, t in self.state_dict.items() if isinstance(t, DTensor) and t.placements != flat[name].placements]

    def create_local_plan(self) -> LoadPlan:
        """What this rank has entries for."""
        if self.metadata is None:
            raise AssertionError("self.metadata is not None")
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put an object in its place."""
        name, made = read_item.dest_index.fqn, load(value, map_location="cpu", weights_only=False)
        if self.flatten_state_dict:
            put(self.original_state_dict, self.mappings[name], made)
        else:
            self.original_state_dict[name] = self.state_dict[name] = made

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The block that an item is read into."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Nothing is left to do."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """This rank's piece of a tensor."""
        return here(self.state_dict[index.fqn])[0].detach()

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The block of the piece that is read into."""
        for dim, (begin, size) in enumerate(zip(read_item.dest_offsets, read_item.lengths)):
            tensor = tensor.narrow(dim, begin, size)
        return tensor

    def _all_read(self) -> None:
        """Tensors whose pieces are several blocks get them back."""
        for original, blocks in self._others:
            original._alias().copy_(blocks.redistribute(placements=original.placements).to_local())


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Fills an empty state with all that the checkpoint has, or with what lies at or below some of its `keys` (`"model"`, `"model.weight"`)."""

    def __init__(self, keys: Collection[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False) -> None:
        """Give the state an entry for each that is wanted: a tensor to read into, or what is known of another value."""
        if state_dict:
            raise AssertionError("not state_dict")
        if metadata is None:
            raise AssertionError("metadata is not None")
        for name, saved in metadata.state_dict_metadata.items():
            path = (metadata.planner_data or {}).get(name, (name,))
            above = {name, *(".".join(map(str, path[:n + 1])) for n in range(len(path)))}
            if self.keys is None or above & set(self.keys):
                put(state_dict, path, empty(saved.size, dtype=saved.properties.dtype) if isinstance(saved, TensorStorageMetadata) else saved)
        super().set_up_planner(state_dict, metadata, is_coordinator)
