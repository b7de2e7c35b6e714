"""Checkpoints in files of safetensors, as Hugging Face's libraries write them: whole on rank 0, or each rank its pieces."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..._tensor import Size, Tensor
from ._safetensors import header_of, kind_of, packed, unpacked
from .filesystem import FileSystemReader, FileSystemWriter, _StorageInfo
from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties, TensorStorageMetadata
from .planner_helpers import here

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_INDEX, _PIECES = "model.safetensors.index.json", "DCP_SHARDING_INFO"


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors into the folder `path`, into the files that `fqn_to_index_mapping` numbers from 1. With `save_distributed` each rank writes its
    pieces into files of its own; `enable_consolidation` has rank 0 make whole files of them, and keeps the pieces in `sharded`."""

    def __init__(self, path: str, fqn_to_index_mapping: dict[str, int] | None = None, thread_count: int = 1, save_distributed: bool = False,
                 enable_consolidation: bool = False, thread_count_consolidation: int = 1) -> None:
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping, self.save_distributed, self.enable_consolidation = fqn_to_index_mapping, save_distributed, enable_consolidation
        self.consolidated_output_path = str(self.path) if enable_consolidation else None
        if enable_consolidation:
            self.path = self.path / "sharded"

    def prepare(self) -> set[Path]:
        self.path.mkdir(parents=True, exist_ok=True)
        return set()

    def write_entries(self, flat: dict[str, Any], rank: int = 0) -> dict[MetadataIndex, tuple[Size | None, _StorageInfo]]:
        """Write what is this rank's of a flat state, without a plan: the pieces of a tensor may have to be gathered first."""
        numbers = self.fqn_to_index_mapping
        files: dict[str, dict[str, tuple[Tensor, tuple[int, ...]]]] = {}
        for name, value in flat.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"{name} is no tensor: files of safetensors hold nothing else")
            local, offset, first = here(value, rank)
            if not self.save_distributed and hasattr(value, "full_tensor"):
                local, offset, first = value.full_tensor(), (0,) * value.ndim, rank == 0
            if first and (local.numel() or not value.numel()):
                number = 1 if numbers is None else numbers[name]
                shard = f"shard-{rank + 1:05}-" if self.save_distributed else ""
                file = f"{shard}model-{number:05}-of-{max(numbers.values()) if numbers else 1:05}.safetensors"
                files.setdefault(file, {})[name] = local.detach().cpu(), offset
        found = {}
        for file, held in files.items():
            about = {_PIECES: json.dumps({name: {"saved_offsets": list(offset)} for name, (_, offset) in held.items()}), "DCP_VERSION": "1.0", "format": "pt"}
            with open(self.path / file, "wb") as stream:
                stream.write(packed({name: t for name, (t, _) in held.items()}, about))
                self._to_disk(stream)
            for name, (t, offset) in held.items():
                found[MetadataIndex(name, offset)] = t.shape, _StorageInfo(file, 0, t.numel() * t.dtype.itemsize)
        return found

    def finish_entries(self, found: list[dict]) -> None:
        """Write which file has what, or make whole files of pieces."""
        if self.save_distributed:
            if self.enable_consolidation:
                consolidated(self.path, Path(self.consolidated_output_path), self.fqn_to_index_mapping)
            return
        where = {index.fqn: (at.relative_path, at.length) for of_rank in found for index, (_, at) in of_rank.items()}
        _write_index(self.path, where)


def _write_index(folder: Path, where: dict[str, tuple[str, int]]) -> None:
    index = {"metadata": {"total_size": sum(n for _, n in where.values())}, "weight_map": {name: file for name, (file, _) in where.items()}}
    (folder / _INDEX).write_text(json.dumps(index, indent=2))


def consolidated(pieces: Path, folder: Path, numbers: dict[str, int] | None) -> None:
    """Make whole files of the pieces that ranks wrote."""
    reader = HuggingFaceStorageReader(str(pieces))
    names = reader.read_metadata().state_dict_metadata
    numbers = dict.fromkeys(names, 1) if numbers is None else numbers
    where = {}
    folder.mkdir(parents=True, exist_ok=True)
    for number in sorted(set(numbers.values())):
        held = {name: reader.read_tensor(name) for name in names if numbers[name] == number}
        file = f"model-{number:05}-of-{max(numbers.values()):05}.safetensors"
        (folder / file).write_bytes(packed(held, {"format": "pt"}))
        where |= {name: (file, t.numel() * t.dtype.itemsize) for name, t in held.items()}
    _write_index(folder, where)


class HuggingFaceStorageReader(FileSystemReader):
    """Reads the files of safetensors in the folder `path`, whole ones or ranks' pieces."""

    def __init__(self, path: str | os.PathLike, thread_count: int = 1) -> None:
        super().__init__(path)

    def read_metadata(self) -> Metadata:
        """What the files hold."""
        found = Metadata({}, None, {}, StorageMeta(), "1.0.0")
        for path in sorted(self.path.glob("*.safetensors")):
            header, _ = header_of(path)
            offsets = json.loads(header.pop("__metadata__", {}).get(_PIECES, "{}"))
            for name, about in header.items():
                begin = offsets[name]["saved_offsets"] if offsets else [0] * len(about["shape"])
                entry = found.state_dict_metadata.setdefault(name, TensorStorageMetadata(TensorProperties(kind_of(about)), Size(about["shape"]), []))
                entry.chunks.append(ChunkStorageMetadata(Size(begin), Size(about["shape"])))
                ends = [b + n for b, n in zip(begin, about["shape"])]
                entry.size = Size([max(a, b) for a, b in zip(entry.size, ends)])
                found.storage_data[MetadataIndex(name, Size(begin))] = path
        found.storage_meta.load_id = self.load_id
        self._metadata = found
        return found

    def _entry(self, index: MetadataIndex) -> Tensor:
        return unpacked(self._metadata.storage_data[index], index.fqn)
