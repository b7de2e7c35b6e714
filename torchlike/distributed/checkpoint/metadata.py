"""What the file `.metadata` of a distributed checkpoint holds; under torch's names, since that file is a pickle of these classes."""
from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._core import dtype as dt
from ..._tensor import Size, Tensor
from ...ops.layouts import LAYOUTS, layout
from ...ops.memory_formats import channels_last, contiguous_format, memory_format, preserve_format

__all__ = ["BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties", "TensorStorageMetadata"]


@dataclass
class ChunkStorageMetadata:
    """A block of a tensor: where it begins and how large it is."""
    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(enum.Enum):
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = dict(zip(_MEM_FORMAT_ENCODING, (contiguous_format, channels_last, preserve_format)))


@dataclass
class TensorProperties:
    """What a tensor is beside its size."""
    dtype: dt.dtype = field(default_factory=dt.get_default_dtype)
    layout: layout = LAYOUTS["strided"]
    requires_grad: bool = False
    memory_format: memory_format = contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple:
        code = next(c for c, f in _FORMATS.items() if f is self.memory_format)
        return self.dtype, self.layout, self.requires_grad, code, self.pin_memory

    def __setstate__(self, state: tuple) -> None:
        self.dtype, self.layout, self.requires_grad, code, self.pin_memory = state
        self.memory_format = _FORMATS[code]

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """The properties of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad, contiguous_format, tensor.is_pinned())


@dataclass
class TensorStorageMetadata:
    """A tensor, and the blocks in which it was written."""
    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Anything else: an object of its own."""


@dataclass
class StorageMeta:
    """Where a checkpoint lies, and which writing and reading this is."""
    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A whole checkpoint: its entries by flat name, the path of each in the nested state (`planner_data`), and where each block lies."""
    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """An entry, or one block of it."""
    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        if offset is not None:
            object.__setattr__(self, "offset", Size(offset))
