"""Checkpoints in a folder: `.metadata`, a pickle of what there is, and files of entries one behind the other, each as torch.save writes it."""
from __future__ import annotations

import io
import itertools
import os
import pickle
import uuid
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from ..._functions import torch
from ..._serialization import names
from ..._serialization.pickler import Pickler
from ..._serialization.tensors import TensorSaver
from ..._serialization.unpickler import Unpickler
from ..._tensor import Tensor
from ...futures import Future
from ...serialization import load, save
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemReader", "FileSystemWriter"]

_VERSION = "1.0.0"


@dataclass
class _StorageInfo:
    """Where a block lies."""
    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict:
        return {name: x for name, x in self.__dict__.items() if x is not None}


@dataclass
class _Files:
    """What a rank's files may be called, and those of a checkpoint that is there already."""
    prefix: str
    old: set[Path]


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint into the folder `path`: one file, or one per entry. What concerns threads and copies ahead changes nothing here."""

    def __init__(self, path: str | os.PathLike, single_file_per_rank: bool = True, sync_files: bool = True, thread_count: int = 1,
                 per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False, overwrite: bool = True) -> None:
        self.path, self.single_file_per_rank, self.sync_files, self.overwrite = Path(path), single_file_per_rank, sync_files, overwrite
        self.reset()

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Begin anew, in another folder where one is given."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def prepare(self) -> set[Path]:
        """Make the folder, and look whether it holds a checkpoint already; the files of one."""
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / ".metadata").exists():
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
            warnings.warn(f"Detected an existing checkpoint in {self.path}, overwriting since {self.overwrite=}. Past version 2.5 of PyTorch, `overwrite` "
                          "will default to False. Set this variable to True to maintain this functionality or False to raise when an existing checkpoint "
                          "is found.", stacklevel=2)
        return set(self.path.glob("__*.distcp"))

    def storage_meta(self) -> StorageMeta:
        """The folder, and which writing this is."""
        return StorageMeta(self.path, self.save_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Begin on a rank."""
        self.is_coordinator = is_coordinator

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """The plan; the coordinator's with the files that are there."""
        return replace(plan, storage_data=_Files("", self.prepare())) if self.is_coordinator else plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Plans with the names of each rank's files."""
        old = next((p.storage_data.old for p in plans if p.storage_data is not None), set())
        return [replace(plan, storage_data=_Files(f"__{rank}_", old)) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        """Write a plan's items into new files: as PyTorch, tensors after all others."""
        where: _Files = plan.storage_data
        items = sorted(plan.items, key=lambda item: item.type is not WriteItemType.BYTE_IO)
        free = (name for name in (f"{where.prefix}{k}.distcp" for k in itertools.count()) if self.path / name not in where.old)
        results = []
        for group in [items] if self.single_file_per_rank else [[item] for item in items]:
            if not group:
                continue
            file = next(free)
            with open(self.path / file, "wb") as stream:
                for item in group:
                    start, data = stream.tell(), planner.resolve_data(item)
                    if isinstance(data, io.BytesIO):
                        stream.write(data.getbuffer())
                    else:
                        _save_tensor(data, stream)
                    results.append(WriteResult(item.index, stream.tell() - start, _StorageInfo(file, start, stream.tell() - start)))
                self._to_disk(stream)
        made = Future()
        made.set_result(results)
        self._old = where.old
        return made

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write `.metadata` of what all ranks wrote, then remove the files of a checkpoint that was there: at any time the old one or the new one is
        whole."""
        metadata.storage_data = {result.index: result.storage_data for of_rank in results for result in of_rank}
        metadata.storage_meta, metadata.version = self.storage_meta(), _VERSION
        with open(self.path / ".metadata.tmp", "wb") as stream:
            saver = TensorSaver()
            Pickler(stream, 4, saver.persistent_id, saver.reduce).dump(metadata)
            self._to_disk(stream)
        os.replace(self.path / ".metadata.tmp", self.path / ".metadata")
        for file in self._old:
            file.unlink()

    def _to_disk(self, stream: IO[bytes]) -> None:
        stream.flush()
        if self.sync_files:
            os.fsync(stream.fileno())


def _save_tensor(value: Tensor, stream: IO[bytes]) -> None:
    data = io.BytesIO()
    value = value.detach().cpu()
    if value.untyped_storage().nbytes() != value.numel() * value.dtype.itemsize:
        value = value.clone()
    save(value, data)
    stream.write(data.getbuffer())


class FileSystemReader(StorageReader):
    """Reads a checkpoint that was written into the folder `path`, by one rank or by many."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self.reset()

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Begin anew, in another folder where one is given."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.load_id, self._metadata = str(uuid.uuid4()), None

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def read_metadata(self) -> Metadata:
        """What `.metadata` says. Only data is made of it: nothing that the file names is called."""
        with open(self.path / ".metadata", "rb") as stream:
            found = Unpickler(stream, names.resolve_class, _no_storage).load()
        if not isinstance(found, Metadata):
            raise pickle.UnpicklingError(f"{self.path / '.metadata'} is not the metadata of a checkpoint")
        found.storage_meta = getattr(found, "storage_meta", None) or StorageMeta()
        found.storage_meta.load_id = self.load_id
        self._metadata = found
        return found

    def _bytes(self, index: MetadataIndex) -> io.BytesIO:
        where = self._metadata.storage_data[index]
        if getattr(where, "transform_descriptors", None):
            raise NotImplementedError(f"{index.fqn} was written through {where.transform_descriptors}, which torchlike does not have")
        file = self.path / where.relative_path
        if file.resolve().parent != self.path.resolve():
            raise pickle.UnpicklingError(f"the metadata leads out of the checkpoint's folder: {where.relative_path}")
        with open(file, "rb") as stream:
            stream.seek(where.offset)
            return io.BytesIO(stream.read(where.length))

    def _entry(self, index: MetadataIndex) -> Tensor:
        """A block."""
        return load(self._bytes(index), map_location="cpu", weights_only=True)

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Begin on a rank."""
        self._metadata = metadata

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        """Read a plan's items, each block once."""
        by_block: dict[MetadataIndex, list[ReadItem]] = {}
        for item in plan.items:
            by_block.setdefault(item.storage_index, []).append(item)
        for index, items in by_block.items():
            block = None
            for item in items:
                if item.type is LoadItemType.BYTE_IO:
                    planner.load_bytes(item, self._bytes(index))
                    continue
                block = self._entry(index) if block is None else block
                part = block[tuple(slice(o, o + n) for o, n in zip(item.storage_offsets, item.lengths))]
                target = planner.resolve_tensor(item).detach()
                if target.size() != part.size():
                    raise AssertionError(f"req {item.storage_index} mismatch sizes {target.size()} vs {part.size()}")
                target.copy_(part)
                planner.commit_tensor(item, target)
        made = Future()
        made.set_result(None)
        return made

    def read_tensor(self, name: str, begin: Sequence[int] | None = None, size: Sequence[int] | None = None) -> Tensor:
        """A tensor, or the part of it that begins at `begin`, put together from its blocks."""
        about = self._metadata.state_dict_metadata[name]
        begin, size = [0] * len(about.size) if begin is None else begin, about.size if size is None else size
        made = torch.empty(size, dtype=about.properties.dtype)
        for chunk in about.chunks:
            common = [(max(a, b), min(a + m, b + n)) for a, m, b, n in zip(begin, size, chunk.offsets, chunk.sizes)]
            if all(first < end for first, end in common):
                block = self._entry(MetadataIndex(name, chunk.offsets))
                if tuple(block.shape) == tuple(size) and tuple(chunk.offsets) == tuple(begin):
                    return block
                made[tuple(slice(first - o, end - o) for (first, end), o in zip(common, begin))] = \
                    block[tuple(slice(first - o, end - o) for (first, end), o in zip(common, chunk.offsets))]
        return made


def _no_storage(pid: Any) -> Any:
    raise pickle.UnpicklingError("the metadata of a checkpoint has no tensors in it")
