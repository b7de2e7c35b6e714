"""Views of other shapes: reshaped, permuted, with and without sizes of one, expanded."""
from __future__ import annotations

import functools
import math

import numpy as np

from .._arguments import as_dim, as_dims, as_list, as_size, distinct, listed_dims, refuse_huge
from .._core import dtype as dt
from .._core.history import warn
from .._core.layout import Layout, view_strides
from .._core.registry import Op, View
from .._public import EVERY_DIM, public
from .._tensor import Tensor, apply
from .bit_views import conj, view_dtype
from .memory_formats import contiguous_

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


@functools.lru_cache(maxsize=1 << 16)
def infer_size(shape: tuple, numel: int) -> tuple:
    """shape with its -1 worked out; torch's RuntimeError where it does not fit."""
    unknown = [i for i, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if any(n < -1 for n in shape):
        i = next(i for i, n in enumerate(shape) if n < -1)
        raise RuntimeError(f"invalid shape dimension {shape[i]} at index {i} of shape {list(shape)}")
    known = math.prod(n for n in shape if n != -1)
    if not unknown:
        if known != numel:
            refuse_huge(shape)
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return shape
    if known == numel == 0:
        raise RuntimeError(f"cannot reshape tensor of {numel} elements into shape {list(shape)} because the unspecified dimension "
                           "size -1 can be any value and is ambiguous")
    if not known or numel % known:
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


class _NotNumPys(TypeError, AttributeError):
    """What `np.reshape` and `jnp.reshape` convert a tensor for: both try its own method first, and take, the one a TypeError, the other an AttributeError for an answer."""

    __module__ = "builtins"

    def __reduce__(self):
        return TypeError, self.args


_NotNumPys.__name__ = _NotNumPys.__qualname__ = "TypeError"


@public(function=False)
def reshape(input, *sizes, shape=None, order=None) -> Tensor:
    """input in another shape: a view where the layout allows it, else a copy. `order` is NumPy's, and refused as in torch."""
    if order is not None:
        raise _NotNumPys("reshape() got an unexpected keyword argument 'order'")
    if not sizes:
        if shape is None:
            raise TypeError("reshape() missing 1 required positional arguments: \"shape\"")
        sizes = (shape,)
    size = infer_size(as_size(*sizes), input._value.aval.numel)
    layout = input._layout
    if layout is None or view_strides(layout, size) is not None:
        return input._view(VIEW, (size,))
    return apply(RESHAPE, (input,), (size,))


@public(method=False)
def _reshape(input, shape) -> Tensor:
    """The function torch.reshape, which takes its sizes as one sequence."""
    return reshape(input, as_list(shape, "reshape", "shape"))


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
    return view(contiguous_(input), (-1,))


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
    except RuntimeError as error:
        if str(error).startswith("shape '"):
            raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({shape[d]}) in the input tensor") from None
        raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
    return view(input, (*shape[:d], *sizes, *shape[d + 1:]))


# -- permutations --------------------------------------------------------------------------------------------------------


def _permute_layout(a: Layout, dims):
    return Layout(tuple(a.shape[d] for d in dims), tuple(a.strides[d] for d in dims), a.offset)


PERMUTE = View("permute", lambda xp, x, dims: xp.transpose(x, dims), layout=_permute_layout,
               put=lambda xp, base, new, dims: xp.transpose(new, _inverse(dims)))
_TRANSPOSE = View("transpose", lambda xp, x, a, b: xp.swapaxes(x, a, b), layout=lambda l, a, b: _permute_layout(l, _swapped(len(l.shape), a, b)),
                  put=lambda xp, base, new, a, b: xp.swapaxes(new, a, b))
_T = View("t", lambda xp, x: x.T if x.ndim == 2 else x, put=lambda xp, base, new: new.T if new.ndim == 2 else new, torch_name="TBackward0",
          layout=lambda l: _permute_layout(l, tuple(reversed(range(len(l.shape))))))


@functools.lru_cache(1024)
def _inverse(dims: tuple) -> tuple:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


def _swapped(n, a, b):
    dims = list(range(n))
    dims[a], dims[b] = b, a
    return tuple(dims)


@public(function=False)
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


@public(method=False)
def _permute(input, dims) -> Tensor:
    """The function torch.permute, which takes its dimensions as one sequence."""
    return permute(input, as_list(dims, "permute", "dims"))


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
    given = [list(d) if isinstance(d, (tuple, list)) else [d] for d in (source, destination)]
    src, dst = ([as_dim(d, n) for d in dims] for dims in given)
    if len(src) != len(dst):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({given[0]} dims) should contain the same number of "
                           f"dims as destination ({given[1]} dims)")
    for what, dims, named_dims in zip(("source", "destination"), (src, dst), given):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{what}` ({named_dims})")
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
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor."
                           + (" For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""))
    return adjoint(self) if self.ndim else self.conj()


def _mT(self) -> Tensor:
    """The last two dimensions swapped."""
    if self.ndim == 1:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return transpose(self, -2, -1) if self.ndim else self


_REVERSED = ("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in a future release. "
             "Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.")
_warned: list[str] = []
_TURNED = ((1, 0),)  # PERMUTE's statics


def _T_property(self) -> Tensor:
    """The dimensions reversed."""
    if self._value.aval.ndim == 2:
        return self._view(PERMUTE, _TURNED)
    if _REVERSED not in _warned:
        _warned.append(_REVERSED)
        warn(_REVERSED)
    return permute(self, tuple(reversed(range(self.ndim))))


def _mH(self) -> Tensor:
    return adjoint(self)


Tensor.T = property(_T_property)
Tensor.mT = property(_mT)
Tensor.H = property(_H)
Tensor.mH = property(_mH)


# -- sizes of one --------------------------------------------------------------------------------------------------------


def _unsqueeze_layout(a: Layout, d):
    stride = a.shape[d] * a.strides[d] if d < len(a.shape) else 1
    return Layout((*a.shape[:d], 1, *a.shape[d:]), (*a.strides[:d], stride, *a.strides[d:]), a.offset)


def _squeeze_layout(a: Layout, dims):
    keep = [i for i in range(len(a.shape)) if i not in dims]
    return Layout(tuple(a.shape[i] for i in keep), tuple(a.strides[i] for i in keep), a.offset)


UNSQUEEZE = View("unsqueeze", lambda xp, x, d: xp.expand_dims(x, d), put=lambda xp, base, new, d: new.reshape(base.shape), layout=_unsqueeze_layout,
                 numpy=lambda x, d: x.reshape(*x.shape[:d], 1, *x.shape[d:]))  # np.expand_dims takes ten times as long
_SQUEEZE, _SQUEEZE_DIM, _SQUEEZE_DIMS = (View(
    name, lambda xp, x, dims: x.squeeze(dims), put=lambda xp, base, new, dims: new.reshape(base.shape), layout=_squeeze_layout,
    torch_name=f"SqueezeBackward{i}") for i, name in enumerate(("squeeze", "squeeze_dim", "squeeze_dims")))


@public()
def unsqueeze(input, dim: int) -> Tensor:
    """A dimension of size one inserted at dim."""
    return input._view(UNSQUEEZE, (as_dim(dim, input._value.aval.ndim + 1),))


@public()
def squeeze(input, dim=EVERY_DIM) -> Tensor:
    """Without dimensions of size one (all of them, or those named)."""
    shape = input._value.aval.shape
    op = _SQUEEZE if dim is EVERY_DIM else _SQUEEZE_DIMS if isinstance(dim, (tuple, list)) else _SQUEEZE_DIM
    if dim is EVERY_DIM:
        dims = tuple(i for i, n in enumerate(shape) if n == 1)
    else:
        n = len(shape)
        named = distinct(listed_dims(dim, n)) if isinstance(dim, (tuple, list)) else as_dims(dim, n) if isinstance(dim, Tensor) else (as_dim(dim, n),)
        dims = tuple(d for d in sorted(named) if shape and shape[d] == 1)
    return input._view(op, (dims,))


# -- expand --------------------------------------------------------------------------------------------------------------


def _expand_layout(a: Layout, shape):
    lead = len(shape) - len(a.shape)
    if not a.shape:
        return Layout(shape, (0,) * len(shape), a.offset)
    strides: list[int] = []
    for i, n in reversed(list(enumerate(shape))):
        have, stride = (a.shape[i - lead], a.strides[i - lead]) if i >= lead else (1, shape[i + 1] * strides[-1])
        strides.append(stride if have == n else 0)
    return Layout(shape, tuple(reversed(strides)), a.offset)


def _expand_put(xp, base, new, shape):
    lead = len(shape) - base.ndim
    index = (0,) * lead + tuple(slice(0, 1) if n == 1 else slice(None) for n in base.shape)
    return new[index]


EXPAND = View("expand", lambda xp, x, shape: xp.broadcast_to(x, shape), put=_expand_put, layout=_expand_layout, overlaps=True,
              numpy=lambda x, shape: x.view() if x.shape == shape else np.broadcast_to(x, shape), vjp=lambda xp, g: g)
EXPAND.free = True


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
    for i, n in reversed(tuple(enumerate(size))):  # the last that does not fit is named
        have = shape[i - lead] if i >= lead else None
        if n == -1:
            if have is None:
                raise RuntimeError(f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {i}")
            n = have
        elif n < 0 and have in (None, 1):
            raise RuntimeError("numel: integer multiplication overflow")  # torch's words
        elif have is not None and have not in (1, n):
            raise RuntimeError(f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton dimension "
                               f"{i}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}")
        out.append(n)
    return self._view(EXPAND, (tuple(out[::-1]),))


@public(function=False)
def expand_as(self, other: Tensor) -> Tensor:
    """self.expand(other.size())."""
    return expand(self, other._value.aval.shape)


@public()
def broadcast_to(input, size) -> Tensor:
    """input.expand(size)."""
    return expand(input, size)
