"""Diagonals, triangles' positions, and copies with one view of them replaced (`*_scatter`)."""

from __future__ import annotations

import operator

import numpy as np

from .._arguments import as_dim, as_int, flag, refuse_learnable
from .._core import device as dev
from .._core import dtype as dt
from .._core.errors import not_implemented
from .._public import named, public
from .._tensor import Tensor, apply
from .creation import _check_dtype, strided_only
from .from_data import place
from .memory_formats import contiguous_format, laid_out, preserve_format
from .slicing import SELECT, SLICE
from .strided_views import _DIAGONAL, diagonal


@public(out=True)
def diag(input, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix (a copy), or the matrix with a vector on its diagonal."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim == 2:
        return _diagonal(input, diagonal, 0, 1).clone(memory_format=contiguous_format)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")


_diagonal = diagonal


@public()
def diag_embed(input, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Zeros with the last dimension of input on the diagonals of the planes dim1, dim2."""
    n = input.ndim + 1
    d1, d2 = as_dim(dim1, n), as_dim(dim2, n)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if not input.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
    offset = as_int(offset, "offset")
    size = input.shape[-1] + abs(offset)
    rest = iter(input.shape[:-1])
    base = input.new_zeros([size if k in (d1, d2) else next(rest) for k in range(n)])
    return named(apply(_DIAGONAL.put, (base, input), (offset, d1, d2)), "DiagEmbedBackward0", input)


@public()
def diagflat(input, offset: int = 0) -> Tensor:
    """A matrix with the flattened input on a diagonal."""
    return diag_embed(input.reshape(-1), offset)


def _replace(name: str, input: Tensor, src: Tensor, op, numbers: tuple, statics: tuple) -> Tensor:
    """input with the part that a view shows replaced by src."""
    shape = op.plan((input._value.aval,), statics).outs[0].shape
    if tuple(src.shape) != shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(shape)}"
            if name != "as_strided"
            else f"expected src to have the size {list(shape)}, got {list(src.shape)}"
        )
    if src.dtype is not input.dtype:
        src = src.to(input.dtype)
    return laid_out(apply(op.put, (input, src, *numbers), statics), input, preserve_format)


@public()
def select_scatter(input, src: Tensor, dim: int, index: int) -> Tensor:
    """input with element `index` along dim replaced by src."""
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = as_dim(dim, input.ndim)
    n, index = input.shape[d], as_int(index, "index", symbolic=True)
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {d}"
        )
    return named(_replace("select", input, src, SELECT, (), (d, index % n)), "SelectScatterBackward0")


@public(out=True)
def slice_scatter(input, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """input with the slice start:end:step along dim replaced by src."""
    if not input.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    d, step = as_dim(dim, input.ndim), as_int(step, "step", symbolic=True)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    first, last, _ = slice(start, end).indices(input.shape[d])
    return named(_replace("slice", input, src, SLICE, (), (d, first, max(0, -(-(last - first) // step)), step)), "SliceScatterBackward0")


@public()
def diagonal_scatter(input, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """input with a diagonal replaced by src."""
    d1, d2 = as_dim(dim1, input.ndim), as_dim(dim2, input.ndim)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return named(_replace("diagonal", input, src, _DIAGONAL, (), (as_int(offset, "offset"), d1, d2)), "DiagonalScatterBackward0")


@public()
def as_strided_scatter(input, src: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """A copy of input with src written through input.as_strided(size, stride, storage_offset)."""
    made = input.clone()
    made.as_strided(size, stride, storage_offset or 0).copy_(src)
    return made


def fill_diagonal_(self, fill_value, wrap: bool = False) -> Tensor:
    """The main diagonal becomes fill_value; wrap continues it below a square in tall matrices."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    refuse_learnable(fill_value, "fill_diagonal_", "fill_value", 1)
    wrap = flag(wrap)
    where = np.zeros(self.shape, bool)
    np.fill_diagonal(where, True, wrap=wrap)
    return self.masked_fill_(place(where, self.device), fill_value)


Tensor.fill_diagonal_ = fill_diagonal_


def _lower(row: int, col: int, offset: int, dtype) -> np.ndarray:
    """Places on and below a diagonal: a row has its first columns."""
    return _places(np.zeros(row, np.int64), np.clip(np.arange(offset + 1, offset + 1 + row), 0, col), dtype)


def _upper(row: int, col: int, offset: int, dtype) -> np.ndarray:
    """Places on and above a diagonal: a row has its last columns."""
    first = np.clip(np.arange(offset, offset + row), 0, col)
    return _places(first, col - first, dtype)


def _places(first: np.ndarray, counts: np.ndarray, dtype) -> np.ndarray:
    """(2, places): so many columns of each row from its first on. np.tril_indices looks at all places of the matrix."""
    ends = np.cumsum(counts)
    made = np.empty((2, int(ends[-1]) if ends.size else 0), dtype)
    made[0] = np.repeat(np.arange(counts.size, dtype=dtype), counts)
    np.subtract(np.arange(made.shape[1], dtype=dtype), np.repeat((ends - counts - first).astype(dtype), counts), out=made[1])
    return made


def _triangle(name: str, find):
    def f(row: int, col: int, offset: int = 0, *, dtype=dt.int64, device=None, layout=None) -> Tensor:
        strided_only(layout, name)
        if dtype not in (dt.int32, dt.int64):
            raise not_implemented(name, _check_dtype(dtype))
        row, col, offset = map(operator.index, (row, col, offset))  # tensors of one integer, too
        if row < 0 or col < 0:
            raise RuntimeError(f"{'row' if row < 0 else 'col'} must be non-negative, got {row if row < 0 else col}")
        return place(find(row, col, offset, dtype.np), dev.resolve(device))

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"(2, count) rows and columns of a matrix's {'lower' if name[:4] == 'tril' else 'upper'} triangle."
    return public(method=False)(f)


tril_indices, triu_indices = _triangle("tril_indices", _lower), _triangle("triu_indices", _upper)
