"""torch.distributed.checkpoint.save."""
from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .. import process_group as groups
from ..objects import all_gather_object
from ._nesting import flatten
from .api import CheckpointException, on_this_rank
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .hf_storage import HuggingFaceStorageWriter
from .metadata import Metadata
from .planner import SavePlan, SavePlanner
from .staging import AsyncStager, DefaultStager, StagingOptions
from .stateful import Stateful
from .storage import StorageWriter

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


def storage(given: Any, checkpoint_id: str | os.PathLike | None, make: type) -> Any:
    """The reader or writer that was given, or one of the folder."""
    if given is not None:
        given.reset(checkpoint_id)
        return given
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    return make(checkpoint_id)


def warn_alone(what: str, no_dist: bool) -> None:
    """PyTorch's warning where no process group was made."""
    if no_dist or not groups.is_initialized():
        warnings.warn(f"torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to {what} in a single process.", stacklevel=3)


def states_of(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state with what saves itself replaced by its own."""
    return {key: x.state_dict() if isinstance(x, Stateful) else x for key, x in state_dict.items()}


def save(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_writer: StorageWriter | None = None,
         planner: SavePlanner | None = None, process_group: Any = None, no_dist: bool = False, use_collectives: bool = True) -> Metadata:
    """Write a nested state into a folder, from which one process or many can load it."""
    warn_alone("save", no_dist)
    writer = storage(storage_writer, checkpoint_id, FileSystemWriter)
    return _write(states_of(state_dict), writer, planner, no_dist, process_group)


def agreement(no_dist: bool, group: Any) -> tuple[int, Callable]:
    """This process's rank, and what runs a step on all ranks."""
    alone = no_dist or not groups.is_initialized() or groups.get_world_size(group) == 1
    rank = 0 if alone else groups.get_rank(group)

    def agreed(step: str, function: Callable, *args: Any) -> list:
        """What every rank's call gives; the first error on all ranks."""
        try:
            mine = on_this_rank(step, function, *args)
        except CheckpointException as error:
            mine = error
        found = [mine]
        if not alone:
            found = [None] * groups.get_world_size(group)
            all_gather_object(found, mine, group=group)
        for x in found:
            if isinstance(x, CheckpointException):
                raise x
        return found
    return rank, agreed


def _write(state_dict: dict[str, Any], writer: StorageWriter, planner: SavePlanner | None, no_dist: bool, group: Any) -> Metadata:
    """Every rank plans what it would write, rank 0 who writes what; then rank 0 writes where all of it lies."""
    rank, agreed = agreement(no_dist, group)
    planner, first = planner or DefaultSavePlanner(), rank == 0
    if isinstance(writer, HuggingFaceStorageWriter):
        flat = on_this_rank("plan", flatten, state_dict)[0] if getattr(planner, "flatten_state_dict", True) else dict(state_dict)
        agreed("plan", lambda: writer.prepare() if first else None)
        found = agreed("write", writer.write_entries, flat, rank)
        return agreed("write", lambda: writer.finish_entries(found) if first else None)[0]

    def local() -> SavePlan:
        planner.set_up_planner(state_dict=state_dict, storage_meta=writer.storage_meta(), is_coordinator=first)
        writer.set_up_storage_writer(first)
        return writer.prepare_local_plan(planner.create_local_plan())
    plans = agreed("plan", local)

    def whole() -> tuple:
        made, metadata = planner.create_global_plan(plans)
        return writer.prepare_global_plan(made), metadata
    plans, metadata = agreed("plan", lambda: whole() if first else None)[0]
    results = agreed("write", lambda: writer.write_data(planner.finish_plan(plans[rank]), planner).wait())
    agreed("write", lambda: writer.finish(metadata=metadata, results=results) if first else None)
    return metadata


class AsyncCheckpointerType(Enum):
    """What `async_save` writes in."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What `async_save` returns where the copy is made in the background, too: when it is made, and when all is written."""

    staging_completion: Future
    upload_completion: Future


def async_save(state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_writer: StorageWriter | None = None,
               planner: SavePlanner | None = None, process_group: Any = None,
               async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD, async_stager: AsyncStager | None = None,
               no_dist: bool = False, use_collectives: bool = True) -> Future | AsyncSaveResponse:
    """`save` in a thread of its own, of the tensors as they are now (as `async_stager` copies them). The result of the Future is the metadata; an
    AsyncSaveResponse where the stager returns a Future. Writing in a process of its own is refused (NotImplementedError)."""
    if async_checkpointer_type is not AsyncCheckpointerType.THREAD:
        raise NotImplementedError("torchlike: async_save(async_checkpointer_type=AsyncCheckpointerType.PROCESS). Leave it out: a thread writes.")
    writer = storage(storage_writer, checkpoint_id, FileSystemWriter)
    stager = DefaultStager(StagingOptions(use_async_staging=False)) if async_stager is None else async_stager
    staged = stager.stage(states_of(state_dict))

    def write() -> Metadata:
        return _write(staged.result() if isinstance(staged, Future) else staged, writer, planner, no_dist, process_group)
    worker = ThreadPoolExecutor(1)
    made = worker.submit(write)
    worker.shutdown(wait=False)
    if not isinstance(staged, Future):
        if stager.should_synchronize_after_execute:
            stager.synchronize_staging()
        return made
    done: Future = Future()
    staged.add_done_callback(lambda f: done.set_result(None) if f.exception() is None else done.set_exception(f.exception()))
    return AsyncSaveResponse(done, made)


def save_state_dict(state_dict: dict[str, Any], storage_writer: StorageWriter, process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False,
                    planner: SavePlanner | None = None) -> Metadata:
    """The older form of `save`, for a state without objects that save themselves."""
    warnings.warn("`save_state_dict` is deprecated and will be removed in future versions.Please use `save` instead.", FutureWarning, stacklevel=2)
    storage_writer.reset()
    return _write(state_dict, storage_writer, planner, no_dist, process_group)
