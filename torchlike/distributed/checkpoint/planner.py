"""Plans of what is written and read, and what a program may make of them: SavePlanner and LoadPlanner."""
from __future__ import annotations

import io
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ..._tensor import Size, Tensor
from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties

__all__ = ["BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner", "TensorWriteData", "WriteItem", "WriteItemType"]


class WriteItemType(Enum):
    """A whole tensor, a piece of one, or bytes."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """A block of a tensor, or bytes."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes there are."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The block that is written, of a tensor of `size`."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """One thing to write, by its place in the checkpoint."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of the whole tensor; None for what is none."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One thing to read: `lengths` elements from `storage_offsets` of a written block, to `dest_offsets` of this rank's piece."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(ABC):
    """Decides what of a state is written. Every rank plans for itself, the coordinator for all, then every rank resolves the items of its plan."""

    @abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False) -> None:
        """Begin to save a state."""

    @abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this rank would write."""

    @abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """On the coordinator: what each rank writes, and what the checkpoint then has."""

    @abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """This rank's plan, as it is carried out."""

    @abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """What is written for an item."""


class LoadPlanner(ABC):
    """Decides what is read into a state, in the same steps; what is read is handed to it item by item."""

    @abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False) -> None:
        """Begin to load into a state."""

    @abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this rank would read."""

    @abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """On the coordinator: what each rank reads."""

    @abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """This rank's plan, as it is carried out."""

    @abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take what was read for an item that is no tensor."""

    @abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The tensor that an item is read into."""

    @abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """What `resolve_tensor` returned has been read into."""
