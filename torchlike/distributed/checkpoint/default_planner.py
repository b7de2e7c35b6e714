"""How a state is laid out in a checkpoint."""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ...ops.creation import empty
from ._nesting import put
from .metadata import Metadata, TensorStorageMetadata

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


@dataclass
class DefaultSavePlanner:
    """`flatten_state_dict`: nested dicts are opened, else each key of the state is one entry. The rest concerns several ranks."""
    flatten_state_dict: bool = True
    flatten_sharded_tensors: bool = True
    dedup_replicated_tensors: bool | None = None
    dedup_save_to_lowest_rank: bool = False
    enable_plan_caching: bool = False


@dataclass
class DefaultLoadPlanner:
    """`allow_partial_load`: entries that the checkpoint lacks stay as they are."""
    flatten_state_dict: bool = True
    flatten_sharded_tensors: bool = True
    allow_partial_load: bool = False


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Fills an empty state with all that the checkpoint has, or with what lies at or below some of its `keys` (`"model"`, `"model.weight"`)."""

    def __init__(self, keys: Collection[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def made(self, state: dict[str, Any], about: Metadata) -> None:
        """Give the state an entry for each that is wanted: a tensor to read into, or what is known of another value."""
        if state:
            raise AssertionError("not state_dict")
        for name, saved in about.state_dict_metadata.items():
            path = (about.planner_data or {}).get(name, (name,))
            above = {name, *(".".join(map(str, path[:n + 1])) for n in range(len(path)))}
            if self.keys is None or above & set(self.keys):
                put(state, path, empty(saved.size, dtype=saved.properties.dtype) if isinstance(saved, TensorStorageMetadata) else saved)
