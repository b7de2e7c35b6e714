"""Views: results that share the input's storage. Reading one is an operation; writing one puts it back into its base."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
from jax import lax

from .._core import dtype as dt
from .._core.layout import Layout, channels_last_strides, contiguous, contiguous_strides, is_channels_last, is_contiguous, view_strides
from .._core.registry import Op, View
from .._public import EVERY_DIM, as_dim, as_int, as_size, distinct, listed_dims, need_tensor, public, refuse_huge, refuse_long
from .._tensor import Size, Tensor, apply

# -- view and reshape ----------------------------------------------------------------------------------------------------


def _view_layout(a: Layout, shape):
    strides = view_strides(a, shape)
    if strides is None:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension spans "
                           "across two contiguous subspaces). Use .reshape(...) instead.")
    return Layout(shape, strides, a.offset)


VIEW = View("view", lambda xp, x, shape: x.reshape(shape), put=lambda xp, base, new, shape: new.reshape(base.shape), layout=_view_layout)
RESHAPE = Op("reshape", lambda xp, x, shape: x.reshape(shape), shape=lambda a, shape: (shape, a.dtype), torch_name="UnsafeViewBackward0",
             vjp=lambda xp, g, plan: g.reshape(plan.avals[0].shape))


def infer_size(shape: tuple, numel: int) -> tuple:
    """shape with its -1 worked out; torch's RuntimeError where it does not fit."""
    unknown = [i for i, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if any(n < -1 for n in shape):
        raise RuntimeError(f"invalid shape dimension {next(n for n in shape if n < -1)}")
    known = math.prod(n for n in shape if n != -1)
    if not unknown:
        if known != numel:
            refuse_huge(shape)
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return shape
    if known == 0:
        raise RuntimeError(f"cannot reshape tensor of {numel} elements into shape {list(shape)} because the unspecified dimension "
                           "size -1 can be any value and is ambiguous")
    if numel % known:
        refuse_huge(shape)
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(numel // known if n == -1 else n for n in shape)


@public(function=False)
def view(self, *shape, size=None, dtype=None) -> Tensor:
    """The same storage in another shape (or, for a dtype argument, read as another type)."""
    if not shape:
        if size is None and dtype is None:
            raise TypeError("view() received an invalid combination of arguments - got (), but expected one of:\n * (torch.dtype dtype)\n * (tuple of ints size)")
        shape = (size,) if dtype is None else (dtype,)
    if len(shape) == 1 and isinstance(shape[0], dt.dtype):
        return view_dtype(self, shape[0])
    return self._view(VIEW, (infer_size(as_size(*shape), self._value.aval.numel),))


@public()
def reshape(input, *sizes, shape=None) -> Tensor:
    """input in another shape: a view where the layout allows it, else a copy."""
    if not sizes:
        if shape is None:
            raise TypeError("reshape() missing 1 required positional arguments: \"shape\"")
        sizes = (shape,)
    size = infer_size(as_size(*sizes), input._value.aval.numel)
    layout = input._layout
    if layout is None or view_strides(layout, size) is not None:
        return input._view(VIEW, (size,))
    return apply(RESHAPE, (input,), (size,))


@public(function=False)
def view_as(self, other: Tensor) -> Tensor:
    """self.view(other.size())."""
    return view(self, other._value.aval.shape)


@public(function=False)
def reshape_as(self, other: Tensor) -> Tensor:
    """self.reshape(other.shape)."""
    return reshape(self, other._value.aval.shape)


@public()
def flatten(input, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions start_dim to end_dim as one."""
    shape = input._value.aval.shape
    start, end = as_dim(start_dim, len(shape)), as_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, (1,))
    if start == end:
        return input
    return reshape(input, (*shape[:start], math.prod(shape[start:end + 1]), *shape[end + 1:]))


@public()
def ravel(input) -> Tensor:
    """One dimension of all elements, contiguous."""
    return contiguous_(reshape(input, (-1,)))


@public()
def unflatten(input, dim: int, sizes) -> Tensor:
    """Dimension dim as several of the given sizes."""
    shape = input._value.aval.shape
    d = as_dim(dim, len(shape))
    sizes = as_size(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    try:
        sizes = infer_size(sizes, shape[d])
    except RuntimeError:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({shape[d]}) in the "
                           "input tensor") from None
    return view(input, (*shape[:d], *sizes, *shape[d + 1:]))


# -- permutations --------------------------------------------------------------------------------------------------------


def _permute_layout(a: Layout, dims):
    return Layout(tuple(a.shape[d] for d in dims), tuple(a.strides[d] for d in dims), a.offset)


PERMUTE = View("permute", lambda xp, x, dims: xp.transpose(x, dims), layout=_permute_layout,
               put=lambda xp, base, new, dims: xp.transpose(new, np.argsort(dims)))
_TRANSPOSE = View("transpose", lambda xp, x, a, b: xp.swapaxes(x, a, b), layout=lambda l, a, b: _permute_layout(l, _swapped(len(l.shape), a, b)),
                  put=lambda xp, base, new, a, b: xp.swapaxes(new, a, b))
_T = View("t", lambda xp, x: x.T if x.ndim == 2 else x, put=lambda xp, base, new: new.T if new.ndim == 2 else new, torch_name="TBackward0",
          layout=lambda l: _permute_layout(l, tuple(reversed(range(len(l.shape))))))


def _swapped(n, a, b):
    dims = list(range(n))
    dims[a], dims[b] = b, a
    return tuple(dims)


@public()
def permute(input, *order, dims=None) -> Tensor:
    """The dimensions in another order."""
    n = input._value.aval.ndim
    dims = as_size(*order) if dims is None else as_size(dims)
    if len(dims) != n:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
                           f"ordering of dimensions i.e. input.dim() = {n} is not equal to len(dims) = {len(dims)}")
    dims = listed_dims(dims, n)
    if len(set(dims)) != n:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return input._view(PERMUTE, (dims,))


@public(names=("swapdims",))
def transpose(input, dim0: int, dim1: int) -> Tensor:
    """Two dimensions swapped."""
    n = input._value.aval.ndim
    dims = as_dim(dim0, n), as_dim(dim1, n)
    return input._view(_TRANSPOSE, dims) if n else input._view(VIEW, ((),))


@public()
def swapaxes(input, axis0: int, axis1: int) -> Tensor:
    """transpose, in NumPy's words."""
    return transpose(input, axis0, axis1)


@public()
def t(input) -> Tensor:
    """The transpose of a matrix; fewer dimensions stay as they are."""
    n = input._value.aval.ndim
    if n > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {n}D")
    return input._view(_T, ())


@public(names=("moveaxis",))
def movedim(input, source, destination) -> Tensor:
    """Dimensions `source` moved to `destination`, the others in order."""
    n = input._value.aval.ndim
    src = [as_dim(d, n) for d in (source if isinstance(source, (tuple, list)) else (source,))]
    dst = [as_dim(d, n) for d in (destination if isinstance(destination, (tuple, list)) else (destination,))]
    if len(src) != len(dst):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(src)} dims) should contain the same number of "
                           f"dims as destination ({list(dst)} dims)")
    if len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise RuntimeError(f"movedim: repeated dim in `{'source' if len(set(src)) != len(src) else 'destination'}` ({src if len(set(src)) != len(src) else dst})")
    if not n:
        return input._view(VIEW, ((),))
    order = [None] * n
    for s, d in zip(src, dst):
        order[d] = s
    rest = iter(i for i in range(n) if i not in src)
    return permute(input, [next(rest) if o is None else o for o in order])


@public()
def adjoint(input) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    if input.ndim == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return transpose(input, -2, -1).conj() if input.ndim else conj(input)


def _H(self) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.")
    return adjoint(self) if self.ndim else self.conj()


def _mT(self) -> Tensor:
    """The last two dimensions swapped."""
    if self.ndim == 1:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return transpose(self, -2, -1) if self.ndim else self


def _T_property(self) -> Tensor:
    """The dimensions reversed."""
    return permute(self, tuple(reversed(range(self.ndim))))


Tensor.T = property(_T_property)
Tensor.mT = property(_mT)
Tensor.H = property(_H)
Tensor.mH = property(lambda self: adjoint(self))


# -- sizes of one --------------------------------------------------------------------------------------------------------


def _unsqueeze_layout(a: Layout, d):
    stride = a.shape[d] * a.strides[d] if d < len(a.shape) else 1
    return Layout((*a.shape[:d], 1, *a.shape[d:]), (*a.strides[:d], stride, *a.strides[d:]), a.offset)


def _squeeze_layout(a: Layout, dims):
    keep = [i for i in range(len(a.shape)) if i not in dims]
    return Layout(tuple(a.shape[i] for i in keep), tuple(a.strides[i] for i in keep), a.offset)


UNSQUEEZE = View("unsqueeze", lambda xp, x, d: xp.expand_dims(x, d), put=lambda xp, base, new, d: new.reshape(base.shape), layout=_unsqueeze_layout)
_SQUEEZE = View("squeeze", lambda xp, x, dims: xp.squeeze(x, dims), put=lambda xp, base, new, dims: new.reshape(base.shape),
                layout=_squeeze_layout)


@public()
def unsqueeze(input, dim: int) -> Tensor:
    """A dimension of size one inserted at dim."""
    return input._view(UNSQUEEZE, (as_dim(dim, input._value.aval.ndim + 1),))


@public()
def squeeze(input, dim=EVERY_DIM) -> Tensor:
    """Without dimensions of size one (all of them, or those named)."""
    shape = input._value.aval.shape
    if dim is EVERY_DIM:
        dims = tuple(i for i, n in enumerate(shape) if n == 1)
    else:
        named = distinct(listed_dims(dim, len(shape))) if isinstance(dim, (tuple, list)) else (as_dim(dim, len(shape)),)
        dims = tuple(d for d in sorted(named) if shape and shape[d] == 1)
    return input._view(_SQUEEZE, (dims,))


# -- expand --------------------------------------------------------------------------------------------------------------


def _expand_layout(a: Layout, shape):
    lead = len(shape) - len(a.shape)
    strides = tuple(0 if i < lead or (a.shape[i - lead] == 1 and n != 1) else a.strides[i - lead] for i, n in enumerate(shape))
    return Layout(shape, strides, a.offset)


def _expand_put(xp, base, new, shape):
    lead = len(shape) - base.ndim
    index = (0,) * lead + tuple(slice(0, 1) if n == 1 else slice(None) for n in base.shape)
    return new[index]


EXPAND = View("expand", lambda xp, x, shape: xp.broadcast_to(x, shape), put=_expand_put, layout=_expand_layout, overlaps=True,
              vjp=lambda xp, g: g)


@public(function=False)
def expand(self, *size, implicit: bool = False) -> Tensor:
    """Dimensions of size one repeated without a copy; -1 keeps a size."""
    size = as_size(*size)
    shape = self._value.aval.shape
    lead = len(size) - len(shape)
    refuse_huge(size)
    if lead < 0:
        raise RuntimeError(f"expand({self.type()}{{{list(shape)}}}, size={list(size)}): the number of sizes provided ({len(size)}) must be "
                           f"greater or equal to the number of dimensions in the tensor ({len(shape)})")
    out = []
    for i, n in enumerate(size):
        have = shape[i - lead] if i >= lead else None
        if n == -1:
            if have is None:
                raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {i}")
            n = have
        elif have is not None and have not in (1, n):
            raise RuntimeError(f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton dimension "
                               f"{i}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}")
        out.append(n)
    return self._view(EXPAND, (tuple(out),))


@public(function=False)
def expand_as(self, other: Tensor) -> Tensor:
    """self.expand(other.size())."""
    return expand(self, other._value.aval.shape)


@public()
def broadcast_to(input, size) -> Tensor:
    """input.expand(size)."""
    return expand(input, size)


# -- slices --------------------------------------------------------------------------------------------------------------


def set_slice(xp, base, new, starts, steps=None):
    """base with a rectangular part replaced by new."""
    if xp is np:
        out = base.copy()
        steps = steps or (1,) * base.ndim
        out[tuple(slice(s, s + (n - 1) * k + 1 if n else s, k) for s, n, k in zip(starts, new.shape, steps))] = new
        return out
    new = new.astype(base.dtype)
    if 0 in new.shape:
        return base
    if steps is None or all(k == 1 for k in steps):
        return lax.dynamic_update_slice(base, new, starts)
    return base.at[tuple(slice(s, s + (n - 1) * k + 1, k) for s, n, k in zip(starts, new.shape, steps))].set(new)


def _slice(xp, x, dim, start, n, step):
    index = [slice(None)] * x.ndim
    index[dim] = slice(start, start + (n - 1) * step + 1 if n else start, step)
    return x[tuple(index)] if xp is np else lax.slice_in_dim(x, start, start + (n - 1) * step + 1 if n else start, step, dim)


def _slice_layout(a: Layout, dim, start, n, step):
    shape, strides = list(a.shape), list(a.strides)
    shape[dim], strides[dim] = n, strides[dim] * step
    return Layout(tuple(shape), tuple(strides), a.offset + start * a.strides[dim])


def _slice_put(xp, base, new, dim, start, n, step):
    starts, steps = [0] * base.ndim, [1] * base.ndim
    starts[dim], steps[dim] = start, step
    return set_slice(xp, base, new, starts, steps)


SLICE = View("slice", _slice, put=_slice_put, layout=_slice_layout)
_PART = View("split", _slice, put=_slice_put, layout=_slice_layout)


def _slice_at(xp, x, start, dim, n):
    return _slice(xp, x, dim, start, n, 1) if xp is np else lax.dynamic_slice_in_dim(x, start, n, dim)


SLICE_AT = View("slice_at", _slice_at, torch_name="SliceBackward0", layout=lambda a, start, dim, n: _slice_layout(a, dim, start, n, 1),
                put=lambda xp, base, new, start, dim, n: _slice_put(xp, base, new, dim, start, n, 1))


def _select(xp, x, dim, i):
    return x[(slice(None),) * dim + (i,)] if xp is np else lax.index_in_dim(x, i, dim, keepdims=False)


def _select_layout(a: Layout, dim, i):
    return Layout(a.shape[:dim] + a.shape[dim + 1:], a.strides[:dim] + a.strides[dim + 1:], a.offset + i * a.strides[dim])


def _select_put(xp, base, new, dim, i):
    starts = [0] * base.ndim
    starts[dim] = i
    return set_slice(xp, base, xp.expand_dims(new, dim), starts)


SELECT = View("select", _select, put=_select_put, layout=_select_layout)
_UNBIND = View("unbind", _select, put=_select_put, layout=_select_layout)
SELECT_AT = View("select_at", lambda xp, x, i, dim: _select(xp, x, dim, i) if xp is np else lax.dynamic_index_in_dim(x, i, dim, False),
                 layout=lambda a, i, dim: _select_layout(a, dim, i), torch_name="SelectBackward0",
                 put=lambda xp, base, new, i, dim: _select_put(xp, base, new, dim, i))


def _is_concrete(t: Tensor) -> bool:
    """Positions in a tensor that exists already (a data set, a cache) change between runs: they are data, not structure."""
    return t._current().array is not None


def take_slice(t: Tensor, dim: int, start: int, n: int, step: int = 1) -> Tensor:
    """n elements from start by step along dim; bounds are the caller's concern."""
    if step == 1 and (n == 1 or (start and _is_concrete(t))):
        return t._view(SLICE_AT, (dim, n), start)
    return t._view(SLICE, (dim, start, n, step))


def take_index(t: Tensor, dim: int, i: int) -> Tensor:
    """Element i (0 <= i < size) along dim."""
    return t._view(SELECT_AT, (dim,), i) if _is_concrete(t) else t._view(SELECT, (dim, i))


@public()
def select(input, dim: int, index: int) -> Tensor:
    """Element `index` along dim, without that dimension."""
    shape = input._value.aval.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = as_dim(dim, len(shape))
    index = as_int(index, "index")
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
    if as_int(length, "length") < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    d = as_dim(dim, len(shape))
    start = as_int(start, "start")
    if not -shape[d] <= start <= shape[d]:
        refuse_long(start)
        raise IndexError(f"start out of range (expected to be in range of [{-shape[d]}, {shape[d]}], but got {start})")
    start = start + shape[d] if start < 0 else start
    if start + length > shape[d]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({shape[d]}).")
    return take_slice(input, d, start, length)


def _several(name: str, views: list) -> tuple:
    """Views that one function made: torch refuses to edit them in place when they take part in differentiation."""
    for i, v in enumerate(views):
        v._several = name, i
    return tuple(views)


@public()
def split(tensor: Any, split_size_or_sections, dim: int = 0) -> tuple:
    """Pieces of split_size (the last may be smaller), or of the listed sizes, along dim."""
    shape = tensor._value.aval.shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = as_dim(dim, len(shape))
    size = shape[d]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = as_size(split_size_or_sections)
        if sum(sizes) != size or any(n < 0 for n in sizes):
            raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {d}), "
                               f"but got split_sizes={list(sizes)}")
    else:
        step = as_int(split_size_or_sections, "split_size")
        if step < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
        if step == 0:
            if size:
                raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
            step = 1
        sizes = [min(step, size - i) for i in range(0, size, step)] or [0]
    out, start = [], 0
    for n in sizes:
        out.append(tensor._view(_PART, (d, start, n, 1)))
        start += n
    return _several("Split", out)


@public()
def unsafe_split(input, split_size: int, dim: int = 0) -> tuple:
    """split, without the promise that the pieces are never written."""
    return _unsafe(split(input, split_size, dim))


@public()
def unsafe_split_with_sizes(input, split_sizes, dim: int = 0) -> tuple:
    """split_with_sizes, without the promise that the pieces are never written."""
    return _unsafe(split(input, list(split_sizes), dim))


@public()
def unsafe_chunk(input, chunks: int, dim: int = 0) -> tuple:
    """chunk, without the promise that the pieces are never written."""
    return _unsafe(chunk(input, chunks, dim))


def _unsafe(pieces: tuple) -> tuple:
    for t in pieces:
        t._several = None
    return pieces


@public()
def split_with_sizes(input, split_sizes, dim: int = 0) -> tuple:
    """split with a list of sizes."""
    return split(input, list(split_sizes), dim)


@public()
def chunk(input, chunks: int, dim: int = 0) -> tuple:
    """At most `chunks` equal pieces along dim."""
    shape = input._value.aval.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if as_int(chunks, "chunks") <= 0:
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
def tensor_split(input, indices_or_sections=None, dim: int = 0, *, indices=None, sections=None, tensor_indices_or_sections=None) -> tuple:
    """Pieces that differ by at most one in size, or cut at the given indices."""
    indices_or_sections = _one_of("tensor_split", indices_or_sections, indices, sections, tensor_indices_or_sections)
    shape = input._value.aval.shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = as_dim(dim, len(shape))
    size = shape[d]
    if isinstance(indices_or_sections, Tensor):
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


@public()
def unbind(input, dim: int = 0) -> tuple:
    """The slices along dim, without that dimension."""
    shape = input._value.aval.shape
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = as_dim(dim, len(shape))
    return _several("Unbind", [input._view(_UNBIND, (d, i)) for i in range(shape[d])])


def _xsplit(name, dim_of):
    def f(input, indices_or_sections=None, *, indices=None, sections=None):
        return tensor_split(input, _one_of(name, indices_or_sections, indices, sections), dim_of(input))
    f.__name__ = f.__qualname__ = name
    f.__doc__ = "tensor_split along a fixed dimension."
    return public()(f)


hsplit = _xsplit("hsplit", lambda x: 0 if x.ndim == 1 else 1)
vsplit = _xsplit("vsplit", lambda x: 0)
dsplit = _xsplit("dsplit", lambda x: 2)


# -- diagonal, unfold, as_strided ----------------------------------------------------------------------------------------


def _diag_size(rows, columns, offset):
    return max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))


def _diagonal_layout(a: Layout, offset, d1, d2):
    n = _diag_size(a.shape[d1], a.shape[d2], offset)
    keep = [i for i in range(len(a.shape)) if i not in (d1, d2)]
    start = 0 if not n else offset * a.strides[d2] if offset >= 0 else -offset * a.strides[d1]
    return Layout((*(a.shape[i] for i in keep), n), (*(a.strides[i] for i in keep), a.strides[d1] + a.strides[d2]), a.offset + start)


def _diagonal_index(n, offset):
    i = np.arange(n)
    return (i, i + offset) if offset >= 0 else (i - offset, i)


def _diagonal_put(xp, base, new, offset, d1, d2):
    moved = xp.moveaxis(base, (d1, d2), (-2, -1))
    index = (..., *_diagonal_index(new.shape[-1], offset))
    if xp is np:
        moved = moved.copy()
        moved[index] = new
    else:
        moved = moved.at[index].set(new)
    return xp.moveaxis(moved, (-2, -1), (d1, d2))


_DIAGONAL = View("diagonal", lambda xp, x, offset, d1, d2: xp.moveaxis(x, (d1, d2), (-2, -1))[(..., *_diagonal_index(_diag_size(x.shape[d1], x.shape[d2], offset), offset))],
                 put=_diagonal_put, layout=_diagonal_layout)


@public()
def diagonal(input, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of the planes of dim1 and dim2, as the last dimension."""
    n = input._value.aval.ndim
    d1, d2 = as_dim(dim1, n), as_dim(dim2, n)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input._view(_DIAGONAL, (int(offset), d1, d2))


def _strided_index(shape, strides, offset):
    index = np.asarray(offset)
    for n, s in zip(shape, strides):
        index = index[..., None] + np.arange(n) * s
    return index


def _unfold_layout(a: Layout, dim, size, step):
    n = (a.shape[dim] - size) // step + 1
    shape = (*a.shape[:dim], n, *a.shape[dim + 1:], size)
    return Layout(shape, (*a.strides[:dim], a.strides[dim] * step, *a.strides[dim + 1:], a.strides[dim]), a.offset)


def _unfold(xp, x, dim, size, step):
    n = (x.shape[dim] - size) // step + 1
    index = np.arange(n)[:, None] * step + np.arange(size)
    return xp.moveaxis(xp.take(x, index, axis=dim), dim + 1, -1)


def _unfold_put(xp, base, new, dim, size, step):
    moved = xp.moveaxis(base, dim, -1)
    new = xp.moveaxis(new, dim, -2)
    for k in range(new.shape[-2]):
        moved = set_slice(xp, moved, new[..., k, :], [0] * (moved.ndim - 1) + [k * step])
    return xp.moveaxis(moved, -1, dim)


def _unfold_vjp(xp, g, plan):
    dim, size, step = plan.statics
    base = plan.avals[0]
    total = xp.zeros((*base.shape[:dim], *base.shape[dim + 1:], base.shape[dim]), g.dtype)
    g = xp.moveaxis(g, dim, -2)
    for k in range(size):  # one strided slice per position inside the window
        n = g.shape[-2]
        index = (..., slice(k, k + (n - 1) * step + 1, step))
        if xp is np:
            total[index] += g[..., k]
        else:
            total = total.at[index].add(g[..., k])
    return xp.moveaxis(total, -1, dim)


_UNFOLD = View("unfold", _unfold, put=_unfold_put, layout=_unfold_layout, overlaps=True, vjp=_unfold_vjp)


@public(function=False)
def unfold(self, dimension: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements every `step` along a dimension; the window is the last dimension."""
    shape = self._value.aval.shape
    d = as_dim(dimension, len(shape))
    if not shape:
        return view(self, (1,)) if size == 1 else view(self, (0,))
    if size > shape[d]:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {shape[d]} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return self._view(_UNFOLD, (d, size, step))


def _flat_storage(xp, base, root_strides):
    """The storage's elements in order, from its root tensor."""
    order = sorted(range(base.ndim), key=lambda i: -root_strides[i])
    return xp.transpose(base, order).reshape(-1), order


def _as_strided(xp, base, root_strides, shape, strides, offset):
    flat, _ = _flat_storage(xp, base, root_strides)
    return flat[_strided_index(shape, strides, offset)]


def _as_strided_put(xp, base, new, root_strides, shape, strides, offset):
    flat, order = _flat_storage(xp, base, root_strides)
    index = _strided_index(shape, strides, offset)
    if xp is np:
        flat = flat.copy()
        flat[index] = new
    else:
        flat = flat.at[index].set(new)
    return xp.transpose(flat.reshape([base.shape[i] for i in order]), np.argsort(order))


def _as_strided_vjp(xp, g, plan):
    root_strides, shape, strides, offset = plan.statics
    base = plan.avals[0]
    order = sorted(range(base.ndim), key=lambda i: -root_strides[i])
    index = _strided_index(shape, strides, offset).reshape(-1)
    if xp is np:
        flat = np.zeros(base.numel, g.dtype)
        np.add.at(flat, index, g.reshape(-1))
    else:
        flat = xp.zeros(base.numel, g.dtype).at[index].add(g.reshape(-1))
    return xp.transpose(flat.reshape([base.shape[i] for i in order]), np.argsort(order))


_AS_STRIDED = View("as_strided", _as_strided, put=_as_strided_put, overlaps=True, vjp=_as_strided_vjp,
                   layout=lambda a, root, shape, strides, offset: Layout(shape, strides, offset))


@public()
def as_strided(input, size, stride, storage_offset: int | None = None) -> Tensor:
    """Any strided window into the tensor's storage."""
    shape, strides = as_size(size), as_size(stride)
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    offset = input.storage_offset() if storage_offset is None else storage_offset
    if any(s < 0 for s in strides):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: " + str(list(strides)))
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    st = input._ensure_storage()
    input._current()
    need = 0 if 0 in shape else offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    have = st.value.aval.numel
    if need > have:
        item = input.dtype.itemsize
        raise RuntimeError(f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize {item} requiring "
                           f"a storage size of {need * item} are out of bounds for storage of size {have * item}")
    root = input
    if input._chain:
        root = input._base if input._base is not None and not input._base._chain else Tensor._of(st.value)
        if root._storage is None:
            root._storage, root._seen, root._layout = st, st.version, st.layout
    root_strides = (st.layout or contiguous(st.value.aval.shape)).strides
    made = root._view(_AS_STRIDED, (root_strides, shape, strides, offset))
    return made._view(_CONJ, ()) if is_conj(input) else made


# -- other types of the same bits ----------------------------------------------------------------------------------------


def _component_layout(a: Layout, which):
    return Layout(a.shape, tuple(2 * s for s in a.strides), 2 * a.offset + which)


def _set_part(xp, base, new, which):
    out = new + 1j * base.imag if which == 0 else base.real + 1j * new
    return out.astype(base.dtype)


class _Component(View):
    """Views of a complex tensor's parts; their dtype differs from the base's."""

    def _shape(self, a, *rest):
        shape, _ = super()._shape(a, *rest)
        return shape, a.dtype.to_complex() if self.name == "view_as_complex" else a.dtype.to_real()


_REAL = _Component("real", lambda xp, x: xp.real(x), put=lambda xp, base, new: _set_part(xp, base, new, 0), layout=lambda a: _component_layout(a, 0),
                   vjp=lambda xp, g: xp.real(g), overlaps=False)
_IMAG = _Component("imag", lambda xp, x: xp.imag(x), put=lambda xp, base, new: _set_part(xp, base, new, 1), layout=lambda a: _component_layout(a, 1),
                   vjp=lambda xp, g, plan: (1j * g).astype(plan.avals[0].dtype.np))
_AS_REAL = _Component("view_as_real", lambda xp, x: xp.stack([xp.real(x), xp.imag(x)], -1),
                      put=lambda xp, base, new: (new[..., 0] + 1j * new[..., 1]).astype(base.dtype),
                      layout=lambda a: Layout((*a.shape, 2), (*(2 * s for s in a.strides), 1), 2 * a.offset),
                      vjp=lambda xp, g, plan: (g[..., 0] + 1j * g[..., 1]).astype(plan.avals[0].dtype.np))
_AS_COMPLEX = _Component("view_as_complex", lambda xp, x: (x[..., 0] + 1j * x[..., 1]).astype(np.complex128 if x.dtype == np.float64 else np.complex64),
                         put=lambda xp, base, new: xp.stack([xp.real(new), xp.imag(new)], -1).astype(base.dtype),
                         layout=lambda a: Layout(a.shape[:-1], tuple(s // 2 for s in a.strides[:-1]), a.offset // 2),
                         vjp=lambda xp, g: xp.stack([xp.real(g), xp.imag(g)], -1))


@public(method=False)
def real(input) -> Tensor:
    """The real part of a complex tensor, as a view; real tensors are returned as they are."""
    return input._view(_REAL, ()) if input.dtype.is_complex else input


@public(method=False)
def imag(input) -> Tensor:
    """The imaginary part of a complex tensor, as a view."""
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return input._view(_IMAG, ())


Tensor.real = property(real, lambda self, value: self.real.copy_(value))
Tensor.imag = property(imag, lambda self, value: self.imag.copy_(value))


@public(method=False)
def view_as_real(input) -> Tensor:
    """A complex tensor as real pairs in a new last dimension."""
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if is_conj(input):
        raise RuntimeError("view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it as real, use "
                           "self.resolve_conj(); however, be warned that the resulting tensor will not alias the original.")
    return input._view(_AS_REAL, ())


@public(method=False)
def view_as_complex(input) -> Tensor:
    """Pairs in the last dimension as complex numbers."""
    if input.dtype not in (dt.float32, dt.float64, dt.float16):
        raise RuntimeError(f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {input.dtype.short}")
    shape = input._value.aval.shape
    if not shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.stride(-1) != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    return input._view(_AS_COMPLEX, ())


_CONJ = View("conj", lambda xp, x: xp.conj(x), put=lambda xp, base, new: xp.conj(new), layout=lambda a: a)


@public()
def conj(input) -> Tensor:
    """The complex conjugate, as a view; real tensors are returned as they are."""
    return input._view(_CONJ, ()) if input.dtype.is_complex else input


@public()
def is_conj(input) -> bool:
    """Whether the tensor is a conjugated view of its storage."""
    return _conjugated(input._chain)


def _conjugated(chain) -> bool:
    return bool(chain) and sum(op is _CONJ for op, _, _ in chain) % 2 == 1


@public()
def resolve_conj(input) -> Tensor:
    """input, or a copy of it where it is a conjugated view."""
    return clone(input) if is_conj(input) else need_tensor(input, "resolve_conj", "'input' (position 1)")


def _bits(xp, x, np_dtype):
    if xp is np:
        return np.ascontiguousarray(x).view(np_dtype)
    if x.dtype.kind == "c":  # JAX casts the bits of real numbers only
        x = xp.stack([x.real, x.imag], -1).reshape(*x.shape[:-1], -1) if x.ndim else xp.stack([x.real, x.imag])
    if np.dtype(np_dtype).kind == "c":
        parts = _bits(xp, x, np.empty(0, np_dtype).real.dtype)
        return lax.complex(parts[..., 0::2], parts[..., 1::2])
    if x.dtype == bool:
        x = x.astype(np.uint8)
    target = np.dtype(np.uint8) if np_dtype == np.bool_ else np_dtype
    ratio = x.dtype.itemsize / target.itemsize
    if ratio < 1:
        x = x.reshape(*x.shape[:-1], -1, int(1 / ratio))
    out = lax.bitcast_convert_type(x, target)
    if ratio > 1:
        out = out.reshape(*x.shape[:-1], -1)
    return out.astype(bool) if np_dtype == np.bool_ else out


class _BitView(View):
    def _shape(self, a, dtype):
        shape, _ = super()._shape(a, dtype)
        ratio = a.dtype.itemsize / dtype.itemsize
        return (shape if ratio == 1 else (*shape[:-1], int(a.shape[-1] * ratio))), dtype


_VIEW_DTYPE = _BitView("view_dtype", lambda xp, x, dtype: _bits(xp, x, dtype.np), put=lambda xp, base, new, dtype: _bits(xp, new, base.dtype),
                       layout=lambda a, dtype: a)
_VIEW_DTYPE.differentiable = _VIEW_DTYPE.put.differentiable = False


def view_dtype(self, dtype) -> Tensor:
    """The same bits read as another dtype; the last dimension grows or shrinks with the element size."""
    if dtype is self.dtype:
        return view(self, self.shape)
    if is_conj(self):
        raise RuntimeError("torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype.")
    a, b = self.dtype.itemsize, dtype.itemsize
    if a != b:
        if not self.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 to view {self.dtype.short} as {dtype.short} (different element sizes)")
        if self.stride(-1) != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {self.dtype.short} as {dtype.short} (different element sizes), but got {self.stride(-1)}")
        if a < b and self.shape[-1] % (b // a):
            raise RuntimeError(f"self.size(-1) must be divisible by {b // a} to view {self.dtype.short} as {dtype.short} (different element "
                               f"sizes), but got {self.shape[-1]}")
    out = self._view(_VIEW_DTYPE, (dtype,))
    shape = out._value.aval.shape
    out._layout = Layout(shape, contiguous_strides(shape), self.storage_offset() * a // b)
    out._base = None  # nothing is differentiated through it
    return out


# -- copies that fix the layout ------------------------------------------------------------------------------------------

_COPY = Op("clone", lambda xp, x: +x if x.dtype != bool else x | False, shape=lambda a: (a.shape, a.dtype), vjp=lambda xp, g: g)


class memory_format:
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
    out = apply(_COPY, (input,))
    return _with_format(out, input, memory_format)


def _with_format(out: Tensor, source: Tensor, fmt) -> Tensor:
    from .._core.layout import like
    shape = out._value.aval.shape
    if fmt is preserve_format:
        out._layout = None if source._layout is None else like(source._layout)
    elif fmt is contiguous_format:
        out._layout = None
    else:
        if len(shape) != (4 if fmt is channels_last else 5):
            raise RuntimeError(f"required rank {4 if fmt is channels_last else 5} tensor to use {fmt.name} format")
        layout = Layout(shape, channels_last_strides(shape), 0)
        out._layout = None if is_contiguous(layout) else layout
    return out


@public(function=False)
def is_contiguous_(self, memory_format=contiguous_format) -> bool:
    """Whether elements lie in order in memory."""
    if memory_format is contiguous_format:
        return self._layout is None or is_contiguous(self._layout)
    if memory_format is preserve_format:
        return True
    rank = 4 if memory_format is channels_last else 5
    return self.ndim == rank and is_channels_last(self._strided())


Tensor.is_contiguous = is_contiguous_
del Tensor.is_contiguous_


def contiguous_(self, memory_format=contiguous_format) -> Tensor:
    """self, or a contiguous copy where it is not."""
    return self if is_contiguous_(self, memory_format) else clone(self, memory_format=memory_format)


Tensor.contiguous = contiguous_


@public()
def detach(input) -> Tensor:
    """The same storage outside autograd."""
    made = input._alias()
    if not input._plain:
        made.__class__ = input.__class__
    return made


def _detach_(self) -> Tensor:
    """Leave the graph in place."""
    if self._base is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
                           "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these "
                           "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as a solution.")
    self._current()
    self._edge = None
    return self


Tensor.detach_ = _detach_


def _size(self, dim: int | None = None):
    shape = self._value.aval.shape
    if dim is None:
        return Size(shape)
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return shape[as_dim(dim, len(shape))]


Tensor.size = _size
Tensor.dim = Tensor.ndimension = lambda self: self._value.aval.ndim
Tensor.numel = Tensor.nelement = lambda self: self._value.aval.numel
Tensor.element_size = lambda self: self._value.aval.dtype.itemsize
