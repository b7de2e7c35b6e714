"""What pickles call that PyTorch wrote: not files of `torch.save` (`_serialization/`), but objects with tensors in them that Python's `pickle` loads.

A storage lies in such a pickle as the bytes of a file of its own, which `torch.load` reads without running anything. All else is up to `pickle`.
"""
from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

from ._core.dtype import dtype as dtype_
from ._serialization import tensors as of_files
from ._tensor import Tensor
from .ops.storages import TypedStorage, UntypedStorage
from .serialization import load


def _load_from_bytes(b: bytes) -> Any:
    """What was saved as these bytes; tensors that PyTorch pickled have their storages so."""
    found = load(io.BytesIO(b), weights_only=False)
    return found.untyped() if isinstance(found, of_files.StorageOfFile) and found.loaded.record.type.dtype is None else found


def _rebuild_tensor_v3(storage: UntypedStorage, storage_offset: int, size: tuple, stride: tuple, requires_grad: bool, backward_hooks: dict, dtype: dtype_,
                       metadata: dict | None = None) -> Tensor:
    """A tensor that shows a storage's bytes as elements of a dtype."""
    made = Tensor.set_(_empty(dtype, storage), TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True), storage_offset, tuple(size), tuple(stride))
    return of_files._finish(made, requires_grad, metadata)


def _empty(dtype: dtype_, storage: UntypedStorage) -> Tensor:
    return of_files.empty(0, dtype=dtype, device=storage.device)


def _rebuild_qtensor(storage: TypedStorage, storage_offset: int, size: tuple, stride: tuple, quantizer_params: tuple, requires_grad: bool,
                     backward_hooks: dict) -> Tensor:
    """A quantized tensor from its integers and what they stand for."""
    if isinstance(storage, of_files.StorageOfFile):  # not a storage yet: nobody looked at it
        return of_files._rebuild_qtensor(storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks)
    from ._quantized.factories import from_parts

    integers = _rebuild_tensor_v3(storage.untyped(), storage_offset, size, stride, False, backward_hooks, of_files._STORED[storage.dtype])
    return from_parts(integers, storage.dtype, quantizer_params)


def _rebuild_from_type_v2(func: Callable[..., Tensor], new_type: type, args: tuple, state: Any) -> Tensor:
    """A tensor of a subclass, or with attributes: made by `func`, and given a state as its class takes it."""
    made = func(*args)
    if func is of_files._rebuild_njt:  # the state is what PyTorch's class holds
        return made
    made = made if type(made) is new_type else made.as_subclass(new_type)
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return made
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for name, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(made, name, value)
    return made


_rebuild_meta_tensor_no_storage = of_files._rebuild_meta_tensor_no_storage
_rebuild_sparse_tensor = of_files._rebuild_sparse_tensor
_rebuild_nested_tensor = of_files._rebuild_nested_tensor
IN_UTILS = ("_rebuild_tensor_v3", "_rebuild_qtensor", "_rebuild_meta_tensor_no_storage", "_rebuild_sparse_tensor", "_rebuild_nested_tensor")


class _Functions(type):
    def __getattr__(cls, name: str) -> Callable:
        found = None if name.startswith("__") else sys.modules[__package__].__dict__.get(name)
        if found is None:
            raise AttributeError(f"type object 'torch._C._VariableFunctionsClass' has no attribute {name!r}")
        return found


class _VariableFunctionsClass(metaclass=_Functions):
    """torch's functions as attributes, as their pickles name them."""

    __module__ = "torch._C"
