"""Checkpoints in a folder: `.metadata`, a pickle of what there is, and files of entries one behind the other, each as torch.save writes it."""
from __future__ import annotations

import io
import itertools
import os
import pickle
import uuid
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..._functions import torch
from ..._serialization import names
from ..._serialization.pickler import Pickler
from ..._serialization.tensors import TensorSaver
from ..._serialization.unpickler import Unpickler
from ..._tensor import Size, Tensor
from ...serialization import load, save
from ..tensor import DTensor, Shard
from ..tensor._utils import compute_local_shape_and_global_offset
from ..tensor.placement_types import _StridedShard
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties, TensorStorageMetadata

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


class FileSystemWriter:
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

    def write_entries(self, flat: dict[str, Any], old: set[Path], rank: int = 0) -> dict[MetadataIndex, tuple[Size | None, _StorageInfo]]:
        """Write what is this rank's of the entries into new files: where it lies, with its size."""
        found: dict[MetadataIndex, tuple[Size | None, _StorageInfo]] = {}
        mine: dict[MetadataIndex, Any] = {}
        for name in sorted(flat, key=lambda name: isinstance(flat[name], Tensor)):  # as PyTorch: tensors after all others
            if isinstance(flat[name], Tensor):
                local, offset, first = here(flat[name], rank)
                if first and (local.numel() or not flat[name].numel()):
                    mine[MetadataIndex(name, offset)] = local
            elif rank == 0:
                mine[MetadataIndex(name)] = flat[name]
        free = (f"__{rank}_{k}.distcp" for k in itertools.count() if self.path / f"__{rank}_{k}.distcp" not in old)
        for group in [list(mine)] if self.single_file_per_rank else [[index] for index in mine]:
            if not group:
                continue
            file = next(free)
            with open(self.path / file, "wb") as stream:
                for index in group:
                    start = stream.tell()
                    _save_entry(mine[index], stream)
                    size = mine[index].shape if isinstance(mine[index], Tensor) else None
                    found[index] = size, _StorageInfo(file, start, stream.tell() - start)
                self._to_disk(stream)
        return found

    def finish(self, flat: dict[str, Any], planner_data: Any, old: set[Path], found: list[dict]) -> Metadata:
        """Write `.metadata` of what all ranks wrote, then remove the files of a checkpoint that was there: at any time the old one or the new one is
        whole."""
        made = Metadata({}, planner_data, {}, StorageMeta(self.path, self.save_id), _VERSION)
        chunks: dict[str, list[ChunkStorageMetadata]] = {name: [] for name in flat}
        for of_rank in found:
            for index, (size, where) in of_rank.items():
                if size is not None:
                    index = MetadataIndex(index.fqn, index.offset, len(chunks[index.fqn]))
                    chunks[index.fqn].append(ChunkStorageMetadata(Size(index.offset), size))
                made.storage_data[index] = where
        for name, value in flat.items():
            made.state_dict_metadata[name] = TensorStorageMetadata(TensorProperties.create_from_tensor(value), value.size(), chunks[name]) \
                if isinstance(value, Tensor) else BytesStorageMetadata()
        with open(self.path / ".metadata.tmp", "wb") as stream:
            saver = TensorSaver()
            Pickler(stream, 4, saver.persistent_id, saver.reduce).dump(made)
            self._to_disk(stream)
        os.replace(self.path / ".metadata.tmp", self.path / ".metadata")
        for file in old:
            file.unlink()
        return made

    def _to_disk(self, stream: IO[bytes]) -> None:
        stream.flush()
        if self.sync_files:
            os.fsync(stream.fileno())


def _save_entry(value: Any, stream: IO[bytes]) -> None:
    data = io.BytesIO()
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        if value.untyped_storage().nbytes() != value.numel() * value.dtype.itemsize:
            value = value.clone()
    save(value, data)
    stream.write(data.getbuffer())


class FileSystemReader:
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

    def _entry(self, index: MetadataIndex, weights_only: bool) -> Any:
        where = self._metadata.storage_data[index]
        if getattr(where, "transform_descriptors", None):
            raise NotImplementedError(f"{index.fqn} was written through {where.transform_descriptors}, which torchlike does not have")
        file = self.path / where.relative_path
        if file.resolve().parent != self.path.resolve():
            raise pickle.UnpicklingError(f"the metadata leads out of the checkpoint's folder: {where.relative_path}")
        with open(file, "rb") as stream:
            stream.seek(where.offset)
            return load(io.BytesIO(stream.read(where.length)), map_location="cpu", weights_only=weights_only)

    def read_object(self, name: str) -> Any:
        """An entry that is no tensor."""
        return self._entry(MetadataIndex(name), False)

    def read_tensor(self, name: str, begin: Sequence[int] | None = None, size: Sequence[int] | None = None) -> Tensor:
        """A tensor, or the part of it that begins at `begin`, put together from its blocks."""
        about = self._metadata.state_dict_metadata[name]
        begin, size = [0] * len(about.size) if begin is None else begin, about.size if size is None else size
        made = torch.empty(size, dtype=about.properties.dtype)
        for chunk in about.chunks:
            common = [(max(a, b), min(a + m, b + n)) for a, m, b, n in zip(begin, size, chunk.offsets, chunk.sizes)]
            if all(first < end for first, end in common):
                block = self._entry(MetadataIndex(name, chunk.offsets), True)
                if tuple(block.shape) == tuple(size) and tuple(chunk.offsets) == tuple(begin):
                    return block
                made[tuple(slice(first - o, end - o) for (first, end), o in zip(common, begin))] = \
                    block[tuple(slice(first - o, end - o) for (first, end), o in zip(common, chunk.offsets))]
        return made


def _no_storage(pid: Any) -> Any:
    raise pickle.UnpicklingError("the metadata of a checkpoint has no tensors in it")
