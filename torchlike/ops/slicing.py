"""Views of parts: slices, selections, splits and chunks."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from .._arguments import as_dim, as_int, as_size, refuse_long
from .._call_forms import refusal
from .._core import dtype as dt
from .._core.grad_mode import mode
from .._core.graph import SEVERAL
from .._core.layout import Layout, contiguous
from .._core.overwrite import changeable
from .._core.program import META_ARRAY
from .._core.registry import Op, Pieces, View
from .._public import named, public
from .._tensor import Tensor, apply
from .known import nobody_watches

SPARSE = 16  # elements per element that is set, from which on setting them one by one is quicker


def spread(base, new, starts, steps):
    """set_slice as a choice between two arrays."""
    pads, inside = [], None
    for axis, (start, step, n, size) in enumerate(zip(starts, steps, new.shape, base.shape)):
        end = start + (n - 1) * step + 1
        pads.append((start, size - end, step - 1))
        if step == 1 and n == size:
            continue
        at = lax.broadcasted_iota(np.int32, [size if i == axis else 1 for i in range(base.ndim)], axis) - np.int32(start)
        there = (at >= 0) & (at < end - start)
        there = there if step == 1 else there & (lax.rem(at, np.int32(step)) == 0)
        inside = there if inside is None else inside & there
    wide = lax.pad(new, np.zeros((), new.dtype), pads)
    return wide if inside is None else jnp.where(inside, wide, base)


def written(base: np.ndarray, index: tuple, new: np.ndarray) -> np.ndarray:
    """base with what an index shows replaced by new."""
    out = changeable(base)
    out[index] = new
    return out


def set_slice(xp, base, new, starts, steps=None):
    """base with a rectangular part replaced by new."""
    if xp is np:
        return written(base, tuple([slice(s, s + (n - 1) * k + 1 if n else s, k) for s, n, k in zip(starts, new.shape, steps or (1,) * base.ndim)]), new)
    new = new.astype(base.dtype)
    if 0 in new.shape:
        return base
    if steps is None or all(k == 1 for k in steps):
        return lax.dynamic_update_slice(base, new, starts)
    if new.size * SPARSE >= base.size:  # XLA's CPU backend makes a scatter of one element after the other
        return spread(base, new, starts, steps)
    return base.at[tuple(slice(s, s + (n - 1) * k + 1, k) for s, n, k in zip(starts, new.shape, steps))].set(new)


def indexed(view: View, index: Callable[..., tuple]) -> View:
    """view, which is one index to NumPy: `index(ndim, *numbers, *statics)`. Its kernels know that before they run, where all positions are structure."""
    def take(plan) -> Callable:
        ndim, statics = plan.avals[0].ndim, plan.statics
        if len(plan.avals) > 1:
            return lambda x, *numbers: np.asarray(x[index(ndim, *numbers, *statics)])
        at = index(ndim, *statics)
        return (lambda x: x[at]) if plan.outs[0].ndim else lambda x: np.asarray(x[at])

    def put(plan) -> Callable:
        ndim, statics = plan.avals[0].ndim, plan.statics
        if len(plan.avals) > 2:
            return lambda base, new, *numbers: written(base, index(ndim, *numbers, *statics), new)
        at = index(ndim, *statics)
        return lambda base, new: written(base, at, new)
    view.bound, view.put.bound = take, put

    def add(xp, base, new, *rest):
        if xp is not np:  # XLA makes one loop of all such sums; a part at a time would be a kernel each, which takes twice as long to compile
            return base + view.put.kernel(xp, xp.zeros(base.shape, base.dtype), new, *rest)
        out = changeable(base)
        out[index(base.ndim, *rest)] += new
        return out
    view.plus = Op(f"{view.name}_plus", add, shape=view.put.shape)
    view.plus.overwrites = True
    return view


def _slice_index(dim: int, start: int, n: int, step: int) -> tuple:
    return (*(slice(None),) * dim, slice(start, start + (n - 1) * step + 1 if n else start, step))


def _slice(xp, x, dim, start, n, step):
    return x[_slice_index(dim, start, n, step)] if xp is np else lax.slice_in_dim(x, start, start + (n - 1) * step + 1 if n else start, step, dim)


def _slice_layout(a: Layout, dim, start, n, step):
    shape, strides = list(a.shape), list(a.strides)
    shape[dim], strides[dim] = n, strides[dim] * step
    return Layout(tuple(shape), tuple(strides), a.offset + start * a.strides[dim])


def _slice_put(xp, base, new, dim, start, n, step):
    if xp is np:
        return written(base, _slice_index(dim, start, n, step), new)
    return set_slice(xp, base, new, *_along(base, dim, start, step))


def _along(base, dim: int, start: int, step: int) -> tuple[list, list]:
    """Starts and steps in all dimensions."""
    starts, steps = [0] * base.ndim, [1] * base.ndim
    starts[dim], steps[dim] = start, step
    return starts, steps


def _slice_spread(xp, base, new, dim, start, n, step):
    return spread(base, new, *_along(base, dim, start, step))


SLICE = indexed(View("slice", _slice, put=_slice_put, layout=_slice_layout, spread=_slice_spread), lambda ndim, *rest: _slice_index(*rest))
_PART = indexed(View("split", _slice, put=_slice_put, layout=_slice_layout), lambda ndim, *rest: _slice_index(*rest))


def _slice_at(xp, x, start, dim, n):
    return _slice(xp, x, dim, start, n, 1) if xp is np else lax.dynamic_slice_in_dim(x, start, n, dim)


SLICE_AT = indexed(View("slice_at", _slice_at, torch_name="SliceBackward0", layout=lambda a, start, dim, n: _slice_layout(a, dim, start, n, 1),
                        put=lambda xp, base, new, start, dim, n: _slice_put(xp, base, new, dim, start, n, 1)),
                   lambda ndim, start, dim, n: _slice_index(dim, start, n, 1))


def _select(xp, x, dim, i):
    return x[(slice(None),) * dim + (i,)] if xp is np else lax.index_in_dim(x, i, dim, keepdims=False)


def _select_layout(a: Layout, dim, i):
    return Layout(a.shape[:dim] + a.shape[dim + 1:], a.strides[:dim] + a.strides[dim + 1:], a.offset + i * a.strides[dim])


def _select_put(xp, base, new, dim, i):
    if xp is np:
        return written(base, (slice(None),) * dim + (i,), new)
    starts = [0] * base.ndim
    starts[dim] = i
    return set_slice(xp, base, xp.expand_dims(new, dim), starts)


def _select_index(ndim: int, dim: int, i: int) -> tuple:
    return (*(slice(None),) * dim, i)


SELECT = indexed(View("select", _select, put=_select_put, layout=_select_layout), _select_index)
_UNBIND = indexed(View("unbind", _select, put=_select_put, layout=_select_layout), _select_index)
SELECT_AT, _UNBIND_AT = (
    indexed(View(name, lambda xp, x, i, dim: _select(xp, x, dim, i) if xp is np else lax.dynamic_index_in_dim(x, i, dim, False),
                 layout=lambda a, i, dim: _select_layout(a, dim, i), torch_name=torch_name, put=lambda xp, base, new, i, dim: _select_put(xp, base, new, dim, i)),
            lambda ndim, i, dim: _select_index(ndim, dim, i))
    for name, torch_name in (("select_at", "SelectBackward0"), ("unbind_at", "UnbindBackward0")))
_UNBIND_ALL = Pieces("unbind_all", lambda xp, x, dim: [_select(xp, x, dim, i) for i in range(x.shape[dim])], torch_name="UnbindBackward0",
                     shape=lambda a, dim: [(a.shape[:dim] + a.shape[dim + 1:], a.dtype)] * a.shape[dim],
                     vjp=lambda xp, gs, dim: xp.stack(gs, dim))


def _starts(sizes: tuple) -> Iterator[int]:
    return itertools.accumulate(sizes[:-1], initial=0)


_SPLIT_ALL = Pieces("split_all", lambda xp, x, dim, sizes, listed: [_slice(xp, x, dim, start, n, 1) for start, n in zip(_starts(sizes), sizes)],
                    shape=lambda a, dim, sizes, listed: [((*a.shape[:dim], n, *a.shape[dim + 1:]), a.dtype) for n in sizes],
                    torch_name=lambda plan: "SplitWithSizesBackward0" if plan.statics[2] else "SplitBackward0",
                    vjp=lambda xp, gs, dim: xp.concatenate(gs, dim))
MANY = 64  # slices, above which their positions are data: each would be an operation of its own, for each length of a list (an episode's)


FEW = 8  # positions that so long a slice may have besides the first: x[1:-1] says where it is by its form
WRITES = 64  # in place; so many are a loop over positions


def is_data(t: Tensor) -> bool:
    """Whether positions in t are data, not structure: in a tensor that exists already (a data set, a cache) they change between
    runs; in one that a loop fills, each would make an operation never seen before."""
    st = t._storage
    return (t._writes > WRITES if st is None else st.host is not None or st.version > WRITES) or t._current().array is not None


def slice_link(t: Tensor, dim: int, start: int, n: int, step: int = 1) -> tuple:
    """How a view shows n elements of t from start by step along dim, as `Tensor._view` takes it; bounds are the caller's concern."""
    size = t._value.aval.shape[dim]
    if step == 1 and n == size:
        return SLICE, (dim, 0, n, 1)
    if step == 1 and (n == 1 or (start and size - n > FEW and is_data(t))):
        return SLICE_AT, (dim, n), start
    return SLICE, (dim, start, n, step)


def index_link(t: Tensor, dim: int, i: int, data: bool = False) -> tuple:
    """The same of element i (0 <= i < size) along dim; whether i itself is data."""
    return (SELECT_AT, (dim,), i) if data or is_data(t) else (SELECT, (dim, i))


def take_slice(t: Tensor, dim: int, start: int, n: int, step: int = 1) -> Tensor:
    """n elements from start by step along dim."""
    return t._view(*slice_link(t, dim, start, n, step))


def take_index(t: Tensor, dim: int, i: int, data: bool = False) -> Tensor:
    """Element i (0 <= i < size) along dim."""
    return t._view(*index_link(t, dim, i, data))


@public()
def select(input, dim: int, index: int) -> Tensor:
    """Element `index` along dim, without that dimension."""
    shape = input._value.aval.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = as_dim(dim, len(shape))
    index = as_int(index, "index", symbolic=True)
    if not -shape[d] <= index < shape[d]:
        refuse_long(index)
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {d}")
    return take_index(input, d, index % shape[d])


@public()
def narrow(input, dim: int, start, length: int) -> Tensor:
    """length elements from start along dim."""
    shape = input._value.aval.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    length = as_int(length, "length", symbolic=True)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    d = as_dim(dim, len(shape))
    if isinstance(start, Tensor) and (start.ndim or start.dtype.category != dt.INT):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = as_int(start, "start", symbolic=True)
    if not -shape[d] <= start <= shape[d]:
        refuse_long(start)
        raise IndexError(f"start out of range (expected to be in range of [{-shape[d]}, {shape[d]}], but got {start})")
    start = start + shape[d] if start < 0 else start
    if start + length > shape[d]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({shape[d]}).")
    return take_slice(input, d, start, length)


def _several(name: str, views: list) -> tuple:
    """Views that one function made: torch refuses to edit them in place when they take part in differentiation."""
    if mode.enabled:
        for i, v in enumerate(views):
            v._several = name, i, v._written, SEVERAL
    return tuple(views)


@public(method=False)
def split(tensor: Any, split_size_or_sections, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of split_size (the last may be smaller), or of the listed sizes, along dim."""
    if not isinstance(tensor, Tensor) and not hasattr(tensor, "__torch_function__"):
        return tensor.split(split_size_or_sections, dim)
    shape = tensor._value.aval.shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if isinstance(split_size_or_sections, Tensor) and split_size_or_sections.numel() == 1:
        split_size_or_sections = int(split_size_or_sections)
    listed = isinstance(split_size_or_sections, (tuple, list))
    try:
        d = as_dim(dim, len(shape))
        sizes = as_size(split_size_or_sections) if listed else (as_int(split_size_or_sections, "split_size", symbolic=True),)
    except TypeError as error:
        by_size = isinstance(split_size_or_sections, int)
        raise refusal("split" if by_size else "split_with_sizes", (tensor, split_size_or_sections, dim), {}, False) or error from None
    size = shape[d]
    if listed:
        if any(n < 0 for n in sizes):
            raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}")
        if sum(sizes) != size:
            raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {d}), "
                               f"but got split_sizes={list(sizes)}")
    else:
        step, = sizes
        if step < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
        if step == 0:
            if size:
                raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
            step = 1
        sizes = [min(step, size - i) for i in range(0, size, step)] or [0]
    name, places = "SplitWithSizes" if listed else "Split", [(d, start, n, 1) for start, n in zip(_starts(sizes), sizes)]
    if _cut_at_once(tensor, len(sizes)):
        return _several(name, _pieces(tensor, _SPLIT_ALL, (d, tuple(sizes), listed), _PART, places))
    views = [tensor._view(_PART, place) for place in places]
    return _several(name, [named(v, "SplitWithSizesBackward0") for v in views] if listed else views)


@public(function=False)
def _split(self, split_size, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of split_size (the last may be smaller), or of the listed sizes, along dim."""
    return split(self, split_size, dim)  # whose second parameter has another name in torch


_split.__qualname__ = "Tensor.split"  # in Python's words about a call


@public()
def unsafe_split(input, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """split, without the promise that the pieces are never written."""
    return _unsafe(split(input, split_size, dim))


@public()
def unsafe_split_with_sizes(input, split_sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """split_with_sizes, without the promise that the pieces are never written."""
    return _unsafe(split(input, list(split_sizes), dim))


@public()
def unsafe_chunk(input, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """chunk, without the promise that the pieces are never written."""
    return _unsafe(chunk(input, chunks, dim))


def _unsafe(pieces: tuple) -> tuple:
    for t in pieces:
        t._several = None
    return pieces


@public()
def split_with_sizes(input, split_sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """split with a list of sizes."""
    return split(input, list(split_sizes), dim)


@public()
def chunk(input, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` equal pieces along dim."""
    shape = input._value.aval.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    chunks = as_int(chunks, "chunks")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = as_dim(dim, len(shape))
    step = -(-shape[d] // chunks)
    return split(input, step, d) if step else split(input, [0] * chunks, d)


def _one_of(name: str, *named):
    """The argument that was given, of those that torch's overloads name differently."""
    given = [x for x in named if x is not None]
    if len(given) != 1:
        raise TypeError(f"{name}() received an invalid combination of arguments: expected one of indices or sections")
    return given[0]


@public()
def tensor_split(input, indices_or_sections=None, dim: int = 0, *, indices=None, sections=None, tensor_indices_or_sections=None) -> tuple[Tensor, ...]:
    """Pieces that differ by at most one in size, or cut at the given indices."""
    indices_or_sections = _one_of("tensor_split", indices_or_sections, indices, sections, tensor_indices_or_sections)
    shape = input._value.aval.shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = as_dim(dim, len(shape))
    size = shape[d]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.dtype is not dt.int64:
            raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {indices_or_sections.dtype.short}")
        if indices_or_sections.ndim > 1:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor "
                               f"with {indices_or_sections.ndim} dims")
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, (tuple, list)):
        cuts = [0, *indices_or_sections, size]
    else:
        n = as_int(indices_or_sections, "sections")
        if n <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {n}")
        cuts = [0]
        for i in range(n):
            cuts.append(cuts[-1] + size // n + (i < size % n))
    out = []
    for a, b in zip(cuts, cuts[1:]):
        a, b, _ = slice(a, b).indices(size)
        out.append(input._view(SLICE, (d, a, max(b - a, 0), 1)))
    return tuple(out)


def _cut_at_once(t: Tensor, n: int) -> bool:
    """Whether to make n pieces by one operation."""
    return n > 1 and t._value.array is not META_ARRAY and nobody_watches()


def _pieces(t: Tensor, op: Pieces, statics: tuple, view: View, places: list[tuple]) -> tuple:
    """The pieces, made by one operation; each is the view of t at its place."""
    t._current()
    layout = t._layout or contiguous(t._value.aval.shape)
    made = apply(op, (t,), statics)
    for out, place in zip(made, places):
        t._shows(out, (view, (), place), view.layout(layout, place))
        if t._unplaced:
            out._unplaced = view, ()
    return made


@public()
def unbind(input, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along dim, without that dimension."""
    shape = input._value.aval.shape
    d = as_dim(dim, len(shape))
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if _cut_at_once(input, shape[d]):
        return _several("Unbind", _pieces(input, _UNBIND_ALL, (d,), _UNBIND, [(d, i) for i in range(shape[d])]))
    many = shape[d] > MANY
    return _several("Unbind", [input._view(_UNBIND_AT, (d,), i) if many else input._view(_UNBIND, (d, i)) for i in range(shape[d])])


def _xsplit(name, least, dim_of):
    def f(input, indices_or_sections=None, *, indices=None, sections=None) -> tuple[Tensor, ...]:
        given, dims = _one_of(name, indices_or_sections, indices, sections), input.ndim
        if dims < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {dims} dimensions!")
        d = dim_of(input)
        if isinstance(given, int) and (not given or input.shape[d] % given):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {d}, but the size of the dimension {input.shape[d]} is not divisible by "
                               f"the split_size {given}!")
        return tensor_split(input, given, d)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = "tensor_split along a fixed dimension."
    return public()(f)


hsplit = _xsplit("hsplit", 1, lambda x: 0 if x.ndim == 1 else 1)
vsplit = _xsplit("vsplit", 2, lambda x: 0)
dsplit = _xsplit("dsplit", 3, lambda x: 2)
