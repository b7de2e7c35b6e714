"""torch.distributed.checkpoint.load."""
from __future__ import annotations

import os
import warnings
from typing import Any

from .default_planner import DefaultLoadPlanner
from .filesystem import FileSystemReader
from .planner import LoadPlan, LoadPlanner
from .state_dict_saver import agreement, states_of, storage, warn_alone
from .stateful import Stateful
from .storage import StorageReader

__all__ = ["load", "load_state_dict"]


def load(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_reader: StorageReader | None = None,
         planner: LoadPlanner | None = None, process_group: Any = None, no_dist: bool = False) -> None:
    """Read what state_dict has entries for: into its tensors, in the place of other values, and through `load_state_dict` where there is one."""
    warn_alone("load", no_dist)
    reader = storage(storage_reader, checkpoint_id, FileSystemReader)
    states = states_of({key: state_dict[key] for key in sorted(state_dict)})
    _read(states, reader, planner, no_dist, process_group)
    for key, value in states.items():
        if key not in state_dict:  # a planner's own
            continue
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(value)
        else:
            state_dict[key] = value


def _read(states: dict[str, Any], reader: StorageReader, planner: LoadPlanner | None, no_dist: bool, group: Any) -> None:
    planner = planner or DefaultLoadPlanner()
    rank, agreed = agreement(no_dist, group)

    def local() -> LoadPlan:
        try:
            about = reader.read_metadata()
        except OSError as error:
            raise AssertionError(f"metadata is None; global metadata read failed: {error}") from error
        planner.set_up_planner(states, about, rank == 0)
        reader.set_up_storage_reader(about, rank == 0)
        return reader.prepare_local_plan(planner.create_local_plan())
    plans = agreed("plan", local)
    plans = agreed("plan", lambda: reader.prepare_global_plan(planner.create_global_plan(plans)) if rank == 0 else None)[0]

    def read() -> None:
        reader.read_data(planner.finish_plan(plans[rank]), planner).wait()
        if isinstance(planner, DefaultLoadPlanner):
            planner._all_read()
    agreed("read", read)


def load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None, coordinator_rank: int = 0,
                    no_dist: bool = False, planner: LoadPlanner | None = None) -> None:
    """The older form of `load`, for a state without objects that load themselves."""
    warnings.warn("`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.", FutureWarning, stacklevel=2)
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None, coordinator_rank: int = 0,
                     no_dist: bool = False, planner: LoadPlanner | None = None) -> None:
    """The same without a warning: lightning and accelerate read whole checkpoints by it, into an empty state."""
    storage_reader.reset()
    _read(state_dict, storage_reader, planner, no_dist, process_group)
