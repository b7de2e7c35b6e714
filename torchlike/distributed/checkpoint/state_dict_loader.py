"""torch.distributed.checkpoint.load."""
from __future__ import annotations

import os
import warnings
from typing import Any

from ..._tensor import Tensor
from ..tensor import DTensor
from ._nesting import flatten, put
from .api import on_this_rank
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, here, unstrided
from .metadata import BytesStorageMetadata, Metadata, TensorStorageMetadata
from .state_dict_saver import states_of, storage, warn_alone
from .stateful import Stateful

__all__ = ["load", "load_state_dict"]


def load(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_reader: FileSystemReader | None = None,
         planner: DefaultLoadPlanner | None = None, process_group: Any = None, no_dist: bool = False) -> None:
    """Read what state_dict has entries for: into its tensors, in the place of other values, and through `load_state_dict` where there is one."""
    warn_alone("load", no_dist)
    reader = storage(storage_reader, checkpoint_id, FileSystemReader)
    states = states_of({key: state_dict[key] for key in sorted(state_dict)})
    _read(states, reader, planner)
    for key, value in states.items():
        if key not in state_dict:  # a planner's own
            continue
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(value)
        else:
            state_dict[key] = value


def _read(states: dict[str, Any], reader: FileSystemReader, planner: DefaultLoadPlanner | None) -> None:
    wanted = on_this_rank("plan", _plan, states, reader, planner or DefaultLoadPlanner())
    on_this_rank("read", _fill, states, reader, *wanted)


def _plan(states: dict[str, Any], reader: FileSystemReader, planner: DefaultLoadPlanner) -> tuple:
    """The entries to read, and their paths in the state."""
    try:
        about = reader.read_metadata()
    except OSError as error:
        raise AssertionError(f"metadata is None; global metadata read failed: {error}") from error
    if isinstance(planner, _EmptyStateDictLoadPlanner):
        planner.made(states, about)
    if planner.flatten_state_dict:
        flat, paths = flatten(states)
        missing = set(about.state_dict_metadata) - set(flat)
        older = flatten(states, dicts_open=False) if missing else ({}, {})
        if missing & set(older[0]):
            flat, paths = older
    else:
        flat, paths = dict(states), {key: (key,) for key in states}
    return {name: x for name, x in flat.items() if _fits(name, x, about, planner.allow_partial_load)}, paths


def _fits(name: str, value: Any, about: Metadata, partial: bool) -> bool:
    saved = about.state_dict_metadata.get(name)
    if saved is None:
        if partial:
            return False
        raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
    if isinstance(saved, TensorStorageMetadata):
        if not isinstance(value, Tensor):
            raise ValueError(f"Invalid checkpoint metadata for {name}, expected {BytesStorageMetadata.__name__} but found {type(saved)}")
        if saved.size != value.size():
            raise ValueError(f"Size mismatch between saved {saved.size} and current: {value.size()} for {name}")
    return True


def _fill(states: dict[str, Any], reader: FileSystemReader, flat: dict[str, Any], paths: dict[str, tuple]) -> None:
    about = reader._metadata.state_dict_metadata
    for name, value in flat.items():
        if isinstance(about[name], TensorStorageMetadata):
            blocks = unstrided(value.detach()) if isinstance(value, DTensor) else value
            local, begin, _ = here(blocks)
            local._alias().copy_(reader.read_tensor(name, begin, local.shape))
            if isinstance(value, DTensor) and blocks.placements != value.placements:
                value._alias().copy_(blocks.redistribute(placements=value.placements).to_local())
        else:
            put(states, paths[name], reader.read_object(name))


def load_state_dict(state_dict: dict[str, Any], storage_reader: FileSystemReader, process_group: Any = None, coordinator_rank: int = 0,
                    no_dist: bool = False, planner: DefaultLoadPlanner | None = None) -> None:
    """The older form of `load`, for a state without objects that load themselves."""
    warnings.warn("`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.", FutureWarning, stacklevel=2)
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict(state_dict: dict[str, Any], storage_reader: FileSystemReader, process_group: Any = None, coordinator_rank: int = 0,
                     no_dist: bool = False, planner: DefaultLoadPlanner | None = None) -> None:
    """The same without a warning: lightning and accelerate read whole checkpoints by it, into an empty state."""
    storage_reader.reset()
    _read(state_dict, storage_reader, planner)
