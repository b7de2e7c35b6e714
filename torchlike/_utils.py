"""What programs take from `torch._utils`: one flat buffer for many tensors, tensors in chunks by size, exceptions that travel."""
from __future__ import annotations

import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import ModuleType, TracebackType
from typing import Any

from ._alias import missing as _missing
from ._core import processor
from ._core.device import device as device_
from ._core.dtype import dtype
from ._device_module import get_device_module
from ._public import Tensors, called
from ._tensor import Tensor
from ._tracebacks import shorten
from .accelerator import current_accelerator, current_device_index
from .ops.creation import empty
from .ops.joining import cat
from .types import Storage


@called
def _flatten_dense_tensors(tensors: Tensors) -> Tensor:
    """The elements of all tensors, one after the other; of one contiguous tensor this is a view."""
    if len(tensors) == 1:
        return tensors[0].contiguous().view(-1)
    return cat([t.contiguous().view(-1) for t in tensors])


@called
def _unflatten_dense_tensors(flat: Tensor, tensors: Tensors) -> tuple[Tensor, ...]:
    """Views of `flat` in the shapes of `tensors`."""
    views, start = [], 0
    for t in tensors:
        size = t.numel()
        views.append(flat.narrow(0, start, size).view(t.shape) if size else empty(t.shape, dtype=flat.dtype, device=flat.device))
        start += size
    return tuple(views)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Lists of tensors of one type, each of at most `size_limit` bytes or of a single tensor."""
    chunks: dict[str, list[Tensor]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for t in tensors:
        kind = t.type()
        parts = (t._indices(), t._values()) if t.is_sparse else (t,)
        size = sum(part.numel() * part.element_size() for part in parts)
        if sizes[kind] and sizes[kind] + size > size_limit:
            yield chunks[kind]
            chunks[kind], sizes[kind] = [], 0
        chunks[kind].append(t)
        sizes[kind] += size
    yield from filter(None, chunks.values())


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """`tensors`, which have the order of `ordered_tensors` within each type, in that order altogether."""
    of_type: dict[str, list[Tensor]] = defaultdict(list)
    for t in tensors:
        of_type[t.type()].append(t)
    rest = {kind: iter(found) for kind, found in of_type.items()}
    return tuple(next(rest[t.type()]) for t in ordered_tensors)


def _rebuild_tensor(storage: Storage, storage_offset: int, size: tuple, stride: tuple) -> Tensor:
    """A tensor that shows a storage's memory."""
    return empty(0, dtype=storage.dtype, device=storage.device).set_(storage, storage_offset, size, stride)


def _rebuild_tensor_v2(storage: Storage, storage_offset: int, size: tuple, stride: tuple, requires_grad: bool, backward_hooks: dict,
                       metadata: Any = None) -> Tensor:
    """The same, of which gradients may be wanted: what a pickled tensor is made by (readers of files in parts, as lightning's, give it storages)."""
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    for name, on in (metadata or {}).items():  # "conj" and "neg": what it shows are the conjugates, or negatives, of the memory
        made = getattr(made, name)() if on else made
    made.requires_grad = requires_grad
    if backward_hooks:
        made._backward_hooks = backward_hooks
    return made


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device: -1 for the CPU where it is allowed, with `optional` the current one where none is named."""
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = device_(device)
    index = None
    if device is not None:
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if index is None and optional:
        return current_device_index()
    if index is None:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


def _element_size(dtype_: dtype) -> int:
    """Bytes per element."""
    if not isinstance(dtype_, dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype_)}")
    return dtype_.itemsize


class KeyErrorMessage(str):
    """KeyError shows the repr of its argument; this one keeps line breaks readable."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, which another thread or process can raise; by default the one being handled."""

    def __init__(self, exc_info: tuple[type[BaseException], BaseException, TracebackType | None] | None = None,
                 where: str = "in background") -> None:
        exc_info = exc_info or sys.exc_info()
        shorten(exc_info[1])
        self.exc_type = exc_info[0]
        self.exc_name = self.exc_type.__name__  # apart: a class that cannot be pickled is replaced on its way
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> None:
        """Raise the original exception class, or RuntimeError if that cannot be made from a message."""
        message = f"Caught {self.exc_name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(KeyErrorMessage(message))
        if getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        try:
            raise error
        finally:
            del error  # else this frame and the traceback would hold each other, and the workers with them


def cpu_count() -> int | None:
    """How many processors this process may use."""
    return processor.cores()


def _get_available_device_type() -> str | None:
    """The kind of accelerator there is; None on a CPU alone."""
    accelerator = current_accelerator(check_available=True)
    return None if accelerator is None else accelerator.type


def _get_device_module(device_type: str) -> ModuleType:
    """The module of functions for a kind of device."""
    return get_device_module(device_type)


def is_compiling() -> bool:
    """`torch.compiler.is_compiling`, under the name that it had before."""
    from .compiler import is_compiling  # which is above the functions here

    warnings.warn("`torch._utils.is_compiling` is deprecated. Use `torch.compiler.is_compiling` instead.", stacklevel=2)
    return is_compiling()


def __getattr__(name: str) -> Any:
    if name in ("_rebuild_parameter", "_rebuild_parameter_with_state"):  # of a layer above this one
        return getattr(sys.modules[f"{__package__}.nn.parameter"], name)
    if name.startswith("_rebuild_"):
        from . import _pickled
        if name in _pickled.IN_UTILS:
            return getattr(_pickled, name)
    if name == "torch":  # where pickles find memory formats
        return sys.modules[__package__]
    raise _missing(name, __name__)
