"""A tensor object that becomes another view, size or storage in place; elementwise Python functions; layout facts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Number

import numpy as np

from .._arguments import as_size, need_tensor
from .._core.errors import class_name
from .._core.grad_mode import mode
from .._core.graph import AccumulateGrad, Outside, Stale
from .._core.history import warn
from .._core.layout import Layout, channels_last_strides, contiguous_strides, extent, is_contiguous
from .._core.room import need_strides
from .._fields import fields
from .._public import FUNCTIONS
from .._resize import Reshaped
from .._resize import resize as resize_storage
from .._tensor import Tensor, _new, _plain_copy, apply
from . import shape_views, strided_views
from .creation import constant
from .from_data import place
from .memory_formats import channels_last, channels_last_3d, memory_format, preserve_format
from .storages import stored
from .underivable import Underived

_PLACE = ("_value", "_storage", "_seen", "_chain", "_layout", "_unplaced", "_edge", "_out", "_base", "_writes")


def _become(self: Tensor, other: Tensor) -> Tensor:
    """self is from now on what `other` is: its value, storage and place in the graph. Attributes and class stay."""
    own, new = fields(self), fields(other)
    for name in _PLACE:
        if name in new:
            own[name] = new[name]
        else:
            own.pop(name, None)
    if isinstance(self._edge, Outside):
        self._plain = False
    return self


def _become_view(self: Tensor, made: Tensor) -> Tensor:
    """self is from now on `made`, a view of its former self; that counts as a write."""
    st, writes = made._storage, self._writes
    _become(self, made)
    self._writes = writes
    self._count_write(st)
    self._seen = st.version
    return self


def _twin(self: Tensor) -> Tensor:
    """Another object for the same tensor."""
    twin = _new(Tensor)
    fields(twin).update({k: v for k, v in fields(self).items() if k in _PLACE})
    twin._former = True
    return twin


def _seen_as(self: Tensor, twin: Tensor, view: Callable, args: tuple, kwargs: dict) -> Tensor:
    """view(twin), for self to become: a view of something differentiable stays one, a leaf stays the leaf it is, and any other tensor keeps
    its place in the graph."""
    if mode.enabled and self.requires_grad:
        self._refuse_several()
    if mode.enabled or self._edge is None:
        return view(twin, *args, **kwargs)
    leaf = isinstance(self._edge, AccumulateGrad)
    if not leaf and self._base is not None:
        mode.enabled = True
        try:
            return view(twin, *args, **kwargs)
        finally:
            mode.enabled = False
    made = view(twin, *args, **kwargs)
    made._edge, made._out = (self._edge, 0) if leaf else (Reshaped(made, (self._edge, self._out)), 0)
    if leaf:
        twin._edge = None
    if isinstance(self._edge, Outside):
        made._end_graph(Stale)
    return made


def _seen_through(self: Tensor, former: Tensor) -> tuple:
    """The place in the graph of self's former shape as a view of self."""
    for op, numbers, statics in former._chain_from(self):
        former = apply(op, (_plain_copy(self), *numbers), statics)
    return former._edge, former._out


def _view_in_place(name: str, view):
    def f(self, *args, **kwargs) -> Tensor:
        self._check_write(True)
        alone, version = self._storage is None, self._written
        self._current()
        twin = _twin(self)
        made = _seen_as(self, twin, view, args, kwargs)
        if alone:  # nobody else sees the memory: keep the result, forget the way back to the former shape
            layout, edge, out = made._layout, made._edge, made._out
            made = Tensor._of(made._value)
            made._layout = None if layout is None or is_contiguous(layout) else layout
            made._edge, made._out, made._writes = edge, out, version + 1
            return _become(self, made)
        _become_view(self, made)
        if mode.enabled and made._base is twin and made._edge is not None:  # other views see the memory through what self is now
            twin._edge, twin._out = _seen_through(self, twin)
        return self

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{name[:-1]}, of this very tensor."
    setattr(Tensor, name, f)
    FUNCTIONS[name] = f


def _squeezed(x: Tensor, *dims, **named) -> Tensor:
    return shape_views.squeeze(x, *((dims,) if len(dims) > 1 else dims), **named)


for _name, _view in (
    ("squeeze_", _squeezed),
    ("unsqueeze_", shape_views.unsqueeze),
    ("transpose_", shape_views.transpose),
    ("t_", shape_views.t),
    ("swapaxes_", shape_views.swapaxes),
    ("swapdims_", shape_views.transpose),
):
    _view_in_place(_name, _view)


def _as_strided_(self, size, stride, storage_offset: int | None = None) -> Tensor:
    """as_strided, of this very tensor."""
    self._check_write(True)
    self._current()
    twin = _twin(self)
    made = _seen_as(self, twin, strided_views.as_strided, (size, stride, storage_offset), {})
    return _become_view(self, made)


Tensor.as_strided_ = FUNCTIONS["as_strided_"] = _as_strided_


def resize_(self, *sizes, memory_format=None) -> Tensor:
    """Another size, in order of memory; a storage that holds too few elements grows."""
    shape = as_size(*sizes)
    if any(n < 0 for n in shape):
        raise RuntimeError(f"requested resize to {list(shape)}, but sizes must not be negative")
    if self.requires_grad and not (self._inference and mode.inference):
        raise RuntimeError("cannot resize variables that require grad")
    if memory_format is preserve_format:
        raise RuntimeError(f"Unsupported memory format {memory_format.name[0].upper()}{memory_format.name[1:-7]}Format")
    if memory_format is channels_last or memory_format is channels_last_3d:
        rank = 4 if memory_format is channels_last else 5
        if len(shape) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")
        return resize_(self, shape).as_strided_(shape, channels_last_strides(shape))
    if tuple(self.shape) == shape:
        return self
    _refuse_huge(shape, self.dtype.itemsize)
    resize_storage(self, shape)
    self._count_write(self._storage)
    self._seen = self._storage.version
    return self


def _refuse_huge(shape: tuple[int, ...], itemsize: int) -> None:
    """torch counts in 64 bits."""
    n = math.prod(shape)
    if n >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")
    if n * itemsize >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    need_strides(shape)


def resize_as_(self, the_template: Tensor, *, memory_format=None) -> Tensor:
    """self.resize_(the_template.size())."""
    if not isinstance(the_template, Tensor):
        raise TypeError(f"resize_as_(): argument 'the_template' (position 1) must be Tensor, not {class_name(the_template)}")
    if self._sparse:
        return self.resize_as_(the_template, memory_format=memory_format)
    if memory_format is preserve_format:
        memory_format = next((f for f in (channels_last, channels_last_3d) if the_template.is_contiguous(memory_format=f) and not the_template.is_contiguous()), None)
    return resize_(self, tuple(the_template.shape), memory_format=memory_format)


def resize(self, *sizes) -> Tensor:
    """Deprecated in torch: self.reshape."""
    warn("non-inplace resize is deprecated")
    shape = as_size(*sizes)
    if math.prod(shape) != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, shape))} ({math.prod(shape)} elements in total), but the given tensor has a size of "
            f"{'x'.join(map(str, self.shape))} ({self.numel()} elements). autograd's resize can only change the shape of a given tensor, "
            "while preserving the number of elements. "
        )
    return self.reshape(shape)


def resize_as(self, other: Tensor) -> Tensor:
    """self.resize(other.size())."""
    return resize(self, tuple(other.shape))


_SET = Underived("set_", "derivative for set_ is not implemented", RuntimeError, "NotImplemented")


def set_(self, source=None, storage_offset: int = 0, size=None, stride=None) -> Tensor:
    """self becomes a window of another tensor's (or a storage's) memory; where nothing is differentiated it keeps its place in the graph."""
    edge, out = self._edge, self._out
    leaf = isinstance(edge, AccumulateGrad)
    if leaf and mode.enabled:
        self._check_write()
    graph = [_plain_copy(t) for t in (self, source) if isinstance(t, Tensor) and t.requires_grad] if mode.enabled else []
    _set(self, source, storage_offset, size, stride)
    if graph:
        made = apply(_SET, (self.detach(), *graph))
        edge, out = made._edge, made._out
    self._edge, self._out = edge, out
    if leaf:
        edge.aval = self._value.aval
    return self


def _set(self, source, storage_offset: int, size, stride) -> Tensor:
    if source is None:
        return _become(self, constant((0,), 0, self.dtype, self.device))
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(f"Could not set tensor of type {source.dtype.c_name} to a tensor of type {self.dtype.c_name}")
        if size is not None:
            return _become(self, _window(source.untyped_storage(), self.dtype, storage_offset, size, stride, tuple(self.shape)))
        if source is self or _same_window(self, source):  # it would see itself through one view more each time
            return self
        return _become(self, source._alias())
    if not hasattr(source, "untyped"):
        raise TypeError(f"set_(): argument 'source' must be Tensor or Storage, not {class_name(source)}")
    if getattr(source, "dtype", self.dtype) is not self.dtype:
        raise RuntimeError(f"Expected a Storage of type {self.dtype.c_name} or an UntypedStorage, but got type {source.dtype.short} for argument 1 'storage'")
    shape = (source.nbytes() // self.dtype.itemsize - storage_offset,) if size is None else size
    return _become(self, _window(source, self.dtype, storage_offset, shape, stride, tuple(self.shape)).detach())


def _same_window(a: Tensor, b: Tensor) -> bool:
    """Whether both show the same elements of one memory, as they are."""
    return (a._storage is not None and a._storage is b._storage and a.shape == b.shape and not a.dtype.is_complex and a.is_neg() == b.is_neg()
            and a.stride() == b.stride() and a.storage_offset() == b.storage_offset())


def _window(storage, dtype, offset: int, size, stride, given: tuple) -> Tensor:
    """A tensor over a storage, which grows where that reaches beyond it, unless the tensor that becomes this one has the shape already."""
    shape = as_size(size)
    strides = contiguous_strides(shape) if stride is None else as_size(stride)
    need = extent(Layout(shape, strides, offset)) * dtype.itemsize
    have = storage.untyped()._cell.value.aval.dtype.itemsize
    if need > storage.nbytes():
        if stride is None and shape == given:
            raise RuntimeError(f"setStorage: sizes {list(shape)}, strides [], storage offset {offset}, and itemsize {dtype.itemsize} requiring a storage size of "
                               f"{need} are out of bounds for storage of size {storage.nbytes()}")
        storage.untyped().resize_(-(-need // have) * have)
    return stored(storage, dtype, offset, shape, strides)


def is_set_to(self, tensor: Tensor) -> bool:
    """Whether both are the same window of the same memory."""
    return self._ensure_storage() is tensor._ensure_storage() and self._strided() == tensor._strided()


# -- Python functions of elements --------------------------------------------------------------------------------------


def _host_only(name: str, self: Tensor, *others: Tensor) -> None:
    for t in others:
        need_tensor(t, name, "'other' (position 1)")
    if any(t.requires_grad for t in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if self.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")


def _computed(self: Tensor, values: list) -> Tensor:
    kind = self.dtype.np
    for v in values:
        if not isinstance(v, Number | np.generic | Tensor):
            name = type(v).__name__
            raise TypeError(f"must be real number, not {name}" if kind.kind in "fVc" else f"'{name}' object cannot be interpreted as an integer")
    array = np.array([int(v) for v in values] if kind.kind in "iu" else values)
    return self.copy_(place(array.astype(kind).reshape(self.shape), self.device))


def apply_(self, callable) -> Tensor:
    """Every element replaced by callable(element); for the CPU, and slow."""
    _host_only("apply_", self)
    return _computed(self, [callable(x) for x in self.reshape(-1).tolist()])


def map_(self, tensor: Tensor, callable) -> Tensor:
    """Every element replaced by callable(element, tensor's element)."""
    _host_only("map_", self, tensor)
    return _computed(
        self,
        [callable(x, y) for x, y in zip(self.reshape(-1).tolist(), tensor.expand(self.shape).reshape(-1).tolist())],
    )


def map2_(self, x: Tensor, y: Tensor, callable) -> Tensor:
    """Every element replaced by callable(element, x's element, y's element)."""
    _host_only("map2_", self, x, y)
    parts = [t.expand(self.shape).reshape(-1).tolist() for t in (self, x, y)]
    return _computed(self, [callable(*each) for each in zip(*parts)])


# -- facts -------------------------------------------------------------------------------------------------------------


def sum_to_size(self, *size) -> Tensor:
    """self summed over the dimensions that broadcasting to it would add or repeat."""
    shape = as_size(*size)
    mine = tuple(self.shape)
    lead = len(mine) - len(shape)
    if lead < 0 or any(n != m and n != 1 for n, m in zip(shape, mine[lead:])):
        raise RuntimeError(
            "size {["
            + ", ".join(map(str, shape))
            + "]} is not expandable to size {["
            + ", ".join(map(str, mine))
            + "]}."
        )
    if not shape:
        return self.sum()
    dims = [*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 and mine[i + lead] != 1)]
    return self.sum(dims, keepdim=True).reshape(shape) if dims else self


def dim_order(self, *, ambiguity_check: bool | Sequence[memory_format] = False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost."""
    formats = ambiguity_check if isinstance(ambiguity_check, (list, tuple)) else ()
    if not (isinstance(ambiguity_check, bool) or formats) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides = self.stride()
    order = tuple(sorted(range(self.ndim), key=lambda d: -strides[d]))
    if ambiguity_check is not False:
        distinct = [(strides[d]) for d in order if self.shape[d] != 1]
        if len(set(distinct)) != len(distinct) or any(n == 1 for n in self.shape):
            if sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
                raise RuntimeError(
                    "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
                )
    return order


def to_dense(self, dtype=None, *, masked_grad: bool | None = None) -> Tensor:
    """self: it is dense already."""
    return self if dtype is None else self.to(dtype)


def record_stream(self, stream) -> None:
    """Nothing to do: XLA keeps memory alive as long as a program reads it."""


for _f in (
    resize_,
    resize_as_,
    resize,
    resize_as,
    set_,
    is_set_to,
    apply_,
    map_,
    map2_,
    sum_to_size,
    dim_order,
    to_dense,
    record_stream,
):
    setattr(Tensor, _f.__name__, _f)
FUNCTIONS.update(resize_as_=resize_as_)
