"""Tensor.new_*: factories that take dtype and device from a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from .._arguments import are_sizes, as_size, constructor_arguments, need_sequence
from .._core import device as dev
from .._core.errors import class_name
from .._core.history import warn
from .._public import called
from .._tensor import Size, Tensor
from .aliases import of_its_class, shared
from .creation import _check_dtype, _empty_check, _finish, constant, filled, for_examples, sized, written
from .from_data import from_data, legacy


def _kind(self, dtype, device):
    return self.dtype if dtype is None else _check_dtype(dtype), self.device if device is None else dev.canonical(
        device
    )


def _constant_like(name: str, value):
    @overload
    def f(self, *size: int, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor: ...
    @overload
    def f(self, size: Sequence[int], *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor: ...
    def f(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **kwargs) -> Tensor:
        for word in kwargs:
            if size or word != "size":
                raise TypeError(f"{name}() got " + (f"multiple values for argument '{word}'" if word == "size" else f"an unexpected keyword argument '{word}'"))
        shape = as_size(kwargs["size"]) if kwargs else as_size(*size)
        _empty_check(shape)
        kind, place = _kind(self, dtype, device)
        return of_its_class(self, _finish(for_examples(constant(shape, written(value, kind), kind, place), self), requires_grad))

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"A tensor of {value or 0}s of the given size with self's dtype and device."
    setattr(Tensor, name, called(f, method=True))


for _name, _value in (("new_zeros", 0), ("new_ones", 1), ("new_empty", None)):
    _constant_like(_name, _value)


def new_full(
    self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False
) -> Tensor:
    """A tensor of the given size filled with a number, with self's dtype and device."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"new_full(): argument 'size' (position 1) must be tuple of ints, not {class_name(size)}")
    return of_its_class(self, _finish(for_examples(filled(as_size(size), fill_value, *_kind(self, dtype, device)), self), requires_grad))


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor:
    """A copy of data with self's dtype and device."""
    if isinstance(data, Tensor):
        warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
             "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor).")
    return of_its_class(self, _finish(from_data(data, *_kind(self, dtype, device)), requires_grad))


def new(self, *args, **kwargs) -> Tensor:
    """The legacy constructor: sizes or data, with self's dtype and device."""
    given = kwargs.pop("device", None)
    if given is not None and args and isinstance(args[0], Tensor):
        raise RuntimeError("Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use torch.as_tensor(...) instead.")
    place = self.device if given is None else dev.canonical(dev.of_kind(given, self.device.type))
    args = constructor_arguments(args, kwargs)
    if not args:
        return constant((0,), 0, self.dtype, place)
    if are_sizes(args):
        return sized(args, self.dtype, place)
    if isinstance(args[0], Size):
        return constant(tuple(args[0]), written(None, self.dtype), self.dtype, place)
    if hasattr(args[0], "untyped"):  # a storage: the tensor looks into its memory
        if getattr(args[0], "dtype", self.dtype) is not self.dtype:
            raise RuntimeError(f"Expected a Storage of type {self.dtype.short} or an UntypedStorage, but got type {args[0].dtype.short} for argument 1 'storage'")
        return constant((0,), 0, self.dtype, self.device).set_(args[0])
    if isinstance(args[0], Tensor):
        return shared(args[0], self.dtype, place)
    need_sequence(args[0])
    return legacy(args[0], self.dtype, place)


for _f in (new_full, new_tensor, new):
    setattr(Tensor, _f.__name__, called(_f, method=True))
