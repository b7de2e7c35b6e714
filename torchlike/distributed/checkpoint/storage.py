"""Where checkpoints are written and read: StorageWriter and StorageReader."""
from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ...futures import Future
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """Where an item was written; `storage_data` is the storage's own."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(ABC):
    """Writes plans. Called in this order: reset, set_up_storage_writer, prepare_local_plan, prepare_global_plan (the coordinator), write_data, finish (the
    coordinator)."""

    @abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Begin anew, perhaps elsewhere."""

    @abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Begin on a rank."""

    @abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """A rank's plan, with what the storage adds."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """All ranks' plans, with what the storage adds."""

    @abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        """Write the items of a plan, which the planner resolves; a future of the list of WriteResults."""

    @abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write what all ranks have written."""

    def storage_meta(self) -> StorageMeta | None:
        """What this writing is, for the planner."""
        return None


class StorageReader(ABC):
    """Reads plans, in the same order: reset, read_metadata, set_up_storage_reader, prepare_local_plan, prepare_global_plan, read_data."""

    @abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Begin anew, perhaps elsewhere."""

    @abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint has."""

    @abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Begin on a rank."""

    @abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """A rank's plan, with what the storage adds."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """All ranks' plans, with what the storage adds."""

    @abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """Read the items of a plan, and hand them to the planner; a future of None."""
