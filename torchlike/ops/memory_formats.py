"""Copies that fix the layout, contiguity, and detached aliases."""
from __future__ import annotations

from typing import overload

import numpy as np

from .._arguments import as_dim
from .._core.layout import Layout, channels_last_strides, contiguous_strides, is_channels_last, is_contiguous, like, suggests_channels_last
from .._core.registry import Op
from .._core.shown import Shown
from .._core.transposing import copy_of
from .._exchange import copied
from .._plainly import state as overriding
from .._public import FUNCTIONS, called, public
from .._tensor import Size, Tensor, _refuse_batched, apply, instance

# in C order: a sum of the dimensions' own orders would be copied again by what reshapes it
_COPY = Op("clone", lambda xp, x: copy_of(x) if xp is np else +x if x.dtype != bool else x | False, shape=lambda a: (a.shape, a.dtype), vjp=lambda xp, g: g)


class memory_format(metaclass=Shown):
    """torch.memory_format: how a tensor's dimensions are ordered in memory (metadata here: XLA chooses its own)."""

    __module__ = "torch"

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return (_format, (self.name,))


contiguous_format, channels_last, channels_last_3d, preserve_format = map(
    memory_format, ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format"))


def _format(name: str) -> memory_format:
    return globals()[name]


@public()
def clone(input, *, memory_format=preserve_format) -> Tensor:
    """A copy with its own storage; gradients flow to input."""
    if memory_format in (channels_last, channels_last_3d):
        _refuse_batched("NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format or torch.contiguous_format "
                        f"(got {''.join(map(str.capitalize, memory_format.name.split('_')))})", input)
    out = apply(_COPY, (input,))
    return laid_out(out, input, memory_format)


def laid_out(out: Tensor, source: Tensor, fmt) -> Tensor:
    """out, a fresh tensor, with the strides that a memory format gives it; to preserve means to have source's."""
    shape = out._value.aval.shape
    if fmt is preserve_format or fmt is None:
        out._layout = None if source._layout is None else like(source._layout)
    elif fmt is contiguous_format:
        out._layout = None
    else:
        if len(shape) != (4 if fmt is channels_last else 5):
            raise RuntimeError(f"required rank {4 if fmt is channels_last else 5} tensor to use {fmt.name} format")
        layout = Layout(shape, channels_last_strides(shape), 0)
        out._layout = None if layout.strides == contiguous_strides(shape) else layout  # dimensions of one element: torch shows their strides
    return out


def suggested_format(t: Tensor) -> memory_format:
    """The format that t's strides stand for; torch's conversions ask for this one, not whether the elements are in order."""
    if t.ndim in (4, 5) and suggests_channels_last(t._layout):
        return channels_last if t.ndim == 4 else channels_last_3d
    return contiguous_format


@public(function=False)
def is_contiguous_(self, *, memory_format=contiguous_format) -> bool:
    """Whether elements lie in order in memory."""
    if memory_format is None:
        raise TypeError("is_contiguous(): argument 'memory_format' must be torch.memory_format, not NoneType")
    if memory_format is contiguous_format:
        return self._layout is None or is_contiguous(self._layout)
    _refuse_batched("NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format", self)
    if memory_format is preserve_format:
        return True
    rank = 4 if memory_format is channels_last else 5
    return self.ndim == rank and is_channels_last(self._strided())


Tensor.is_contiguous = is_contiguous_
del Tensor.is_contiguous_


def contiguous_(self, *, memory_format=contiguous_format) -> Tensor:
    """self, or a contiguous copy where it is not."""
    if memory_format is None:
        raise TypeError("contiguous(): argument 'memory_format' must be torch.memory_format, not NoneType")
    return self if is_contiguous_(self, memory_format=memory_format) else clone(self, memory_format=memory_format)


Tensor.contiguous = contiguous_


@public()
def detach(input) -> Tensor:
    """The same storage outside autograd."""
    made = input._alias()
    if input.__class__._plain or overriding.disabled or input._dispatches:
        return made
    return instance(made, input.__class__)


def _detach_(self) -> Tensor:
    """Leave the graph in place."""
    if self._base is not None and not self._base._former:
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
                           "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these "
                           "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.")
    self._current()
    self._edge = self._base = None
    self._flagged()
    return self


Tensor.detach_ = _detach_
FUNCTIONS["detach_"] = called(copied(_detach_))


@overload
def _size(self, dim: None = None) -> Size: ...
@overload
def _size(self, dim: int) -> int: ...
def _size(self, dim: int | None = None) -> Size | int:
    shape = self._value.aval.shape
    if dim is None:
        return Size(shape)
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return shape[as_dim(dim, len(shape))]


def _dim(self) -> int:
    return self._value.aval.ndim


def _numel(self) -> int:
    return self._value.aval.numel


def _element_size(self) -> int:
    return self._value.aval.dtype.itemsize


Tensor.size, Tensor.element_size = _size, _element_size
Tensor.dim = Tensor.ndimension = _dim
Tensor.numel = Tensor.nelement = _numel
