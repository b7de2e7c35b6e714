"""torch.types: names for annotations."""
from __future__ import annotations

import os
from typing import IO, TypeAlias, Union

from ._core.device import device as _device
from ._core.dtype import dtype as _dtype
from ._symbolic import SymBool, SymFloat, SymInt
from ._tensor import Size, Tensor
from .ops.storages import TypedStorage, UntypedStorage

__all__ = ["Number", "Device", "FileLike", "Storage"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = Union[_device, str, int, None]
FileLike: TypeAlias = Union[str, os.PathLike, IO[bytes]]
Storage: TypeAlias = TypedStorage | UntypedStorage
PySymType: TypeAlias = SymInt | SymFloat | SymBool
IntLikeType, FloatLikeType, BoolLikeType = int | SymInt, float | SymFloat, bool | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)
_size: TypeAlias = Union[Size, list[int], tuple[int, ...]]
_TensorOrTensors: TypeAlias = Union[Tensor, "tuple[Tensor, ...]"]
_dtype, _device = _dtype, _device
