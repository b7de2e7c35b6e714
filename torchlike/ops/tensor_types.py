"""The legacy tensor types: `torch.LongTensor(...)`, `isinstance(t, torch.FloatTensor)`, `t.type("torch.LongTensor")`."""

from __future__ import annotations

from typing import Any, overload

from .._arguments import are_sizes, as_size, constructor_arguments, flag, need_sequence
from .._core import device as dev
from .._core import dtype as dt
from .._core.shown import Shown
from .._public import FUNCTIONS
from .._tensor import Size, Tensor
from .aliases import shared
from .creation import constant, sized, written
from .from_data import legacy
from .memory_formats import preserve_format

_DTYPES = (dt.bool_, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64, dt.float16, dt.bfloat16, dt.float32, dt.float64)


class tensortype(Shown):  # noqa: N801  (torch's name)
    """The class of the legacy types: an instance is any tensor of their dtype and kind of device."""

    dtype: dt.dtype
    kind: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and not instance._sparse and instance.device.type == cls.kind

    def __new__(mcs, name: str, bases: tuple, namespace: dict) -> tensortype:
        """TypeError where a program derives from one of the types."""
        if bases:
            raise TypeError(f"type '{bases[0].__module__}.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(mcs, name, bases, namespace)

    def need(cls) -> None:
        """TypeError unless there are devices of this kind: programs ask so whether they may use one."""
        if cls.kind == "cuda" and not dev.cuda_available():
            raise TypeError(f"type {cls.__module__}.{cls.__name__} not available. Torch not compiled with CUDA enabled.")

    def __call__(cls, *args: Any, device: Any = None, **kwargs: Any) -> Tensor:
        """Sizes make an uninitialised tensor, a sequence becomes data; the memory of a tensor, or of an array of this dtype, is shared."""
        if len(args) == 1 and args[0].__class__ is list and cls.kind == "cpu" and device is None and not kwargs:  # most calls
            return legacy(args[0], cls.dtype, dev.CPU)
        cls.need()
        args = constructor_arguments(args, kwargs)
        place = dev.canonical(cls.kind if device is None else dev.of_kind(device, cls.kind))
        if are_sizes(args):
            return sized(args or (0,), cls.dtype, place)
        (data,) = args
        if isinstance(data, Tensor):
            if device is not None:
                raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  "
                                   "Use torch.tensor(...) or torch.as_tensor(...) instead.")
            return shared(data, cls.dtype, place)
        if isinstance(data, Size):
            return constant(as_size(data), written(None, cls.dtype), cls.dtype, place)
        from .storages import TypedStorage, UntypedStorage, stored  # storages are made of these types
        if isinstance(data, (TypedStorage, UntypedStorage)):
            if getattr(data, "dtype", cls.dtype) is not cls.dtype:
                raise RuntimeError(f"Expected a Storage of type {cls.dtype.short} or an UntypedStorage, but got {data.dtype.short}")
            return stored(data, cls.dtype, 0, (data.nbytes() // cls.dtype.itemsize,), None)
        need_sequence(data)
        return legacy(data, cls.dtype, place)


def _types(kind: str) -> dict[str, tensortype]:
    module = "torch" if kind == "cpu" else f"torch.{kind}"
    names = {f"{dtype.short}Tensor": dtype for dtype in _DTYPES}
    return {n: tensortype(n, (), {"__module__": module, "dtype": d, "kind": kind}) for n, d in names.items()}


CPU, CUDA = _types("cpu"), _types("cuda")
LEGACY = {f"{t.__module__}.{t.__name__}": t for t in (*CPU.values(), *CUDA.values())}


def type_name(t: Tensor) -> str:
    """"torch.FloatTensor", "torch.cuda.LongTensor" and so on."""
    kind = t.device.type
    return f"torch.{t.dtype.short}Tensor" if kind == "cpu" else f"torch.{kind}.{t.dtype.short}Tensor"


@overload
def _type(self: Tensor) -> str: ...
@overload
def _type(self: Tensor, dtype: Any, non_blocking: bool = False, *, memory_format: Any = preserve_format) -> Tensor: ...
def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False, *, memory_format: Any = preserve_format) -> str | Tensor:
    """The name of the tensor's type; with an argument, a dtype or a legacy type or its name, the tensor cast to it."""
    flag(non_blocking)
    if dtype is None:
        return type_name(self)
    if isinstance(dtype, dt.dtype):
        return self.to(dtype, memory_format=memory_format)
    if not isinstance(dtype, str | type):
        raise TypeError("dtype must be a type, str, or dtype object")
    found = LEGACY.get(dtype) if isinstance(dtype, str) else dtype
    if found is Tensor or dtype == "torch.Tensor":
        return self.to(dt.get_default_dtype(), memory_format=memory_format)
    if not isinstance(found, tensortype):
        raise ValueError(f"invalid type: '{dtype if isinstance(dtype, str) else dtype.__name__}'")
    return self.to(device=found.kind if self.device.type != found.kind else self.device, dtype=found.dtype, memory_format=memory_format)


Tensor.type = _type
FUNCTIONS.update(CPU)
