"""Coordinates: entry k of a sparse_coo tensor lies at places[:, k]; entries at one place add up."""
from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from .._core import dtype as dt
from .._core.errors import class_name
from .._core.grad_mode import mode
from .._core.graph import AccumulateGrad
from .._tensor import Tensor, _new
from .._valueless import finish
from ..ops.joining import cat
from .invariants import check_inside
from .tensor import SparseTensor, named, on_device


class Coo(SparseTensor):
    """`_places` is (sparse dimensions, entries) of int64."""

    _places: Tensor
    _unique = False  # coalesced: in order, each place once
    _inside = False  # places are known to be within the shape
    _first: tuple[Tensor, np.ndarray] | None = None  # places, and of the entries at each the first; once somebody asked
    layout_name = "sparse_coo"
    index_names = ("_places",)
    backend = "Sparse"

    def _like(self, entries: Tensor, unique: bool | None = None) -> Coo:
        return coo(self._places, entries, (*self._dims[:self.sparse_dim()], *entries.shape[1:]), self._unique if unique is None else unique, self._inside)

    def _as_gradient(self, g: Tensor) -> Coo:
        """Entries of one place have one gradient, that of the place: it is there once."""
        if self._unique:
            return self._like(g)
        if self._first is None or self._first[0] is not self._places:
            self._first = self._places, np.unique(place_numbers(self.host(), self._dims), return_index=True)[1]
        first = self._first[1]
        if len(first) == self._nnz():  # the gradient's values are those of the entries' gradient, also when they are written
            return self._like(g)
        return coo(on_device(self.host()[:, first], self._places), g.index_select(0, on_device(first, g)), self._dims, True, True)

    def _gradient_entries(self, g: Tensor) -> Tensor:
        return super()._gradient_entries(g) if self._unique or self._same_places(g) else self._masked(g)

    def _moved(self, device: Any) -> Coo:
        self._places = self._places.to(device)
        return self

    # -- parts ---------------------------------------------------------------------------------------------------------

    def sparse_dim(self) -> int:
        return self._places.shape[0]

    def dense_dim(self) -> int:
        return self._entries.ndim - 1

    def _nnz(self) -> int:
        return self._places.shape[1]

    def _indices(self) -> Tensor:
        return self._places

    def _values(self) -> Tensor:
        return self._entries.detach()

    def indices(self) -> Tensor:
        if not self._unique:
            raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
        return self._places

    def values(self) -> Tensor:
        if not self._unique:
            raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
        if self._entries._edge is None or not mode.enabled:
            return self._entries.detach()
        return named(self._entries, "Values")

    def is_coalesced(self) -> bool:
        return self._unique

    def _coalesced_(self, coalesced: bool) -> Coo:
        self._unique = coalesced
        return self

    def crow_indices(self) -> NoReturn:
        raise RuntimeError("crow_indices expected sparse row compressed tensor layout but got Sparse")

    def col_indices(self) -> NoReturn:
        raise RuntimeError("col_indices expected sparse row compressed tensor layout but got Sparse")

    def ccol_indices(self) -> NoReturn:
        raise RuntimeError("ccol_indices expected sparse column compressed tensor layout but got Sparse")

    def row_indices(self) -> NoReturn:
        raise RuntimeError("row_indices expected sparse column compressed tensor layout but got Sparse")

    def stride(self, dim: int | None = None) -> Any:
        zeros = (0,) * len(self._dims)
        return zeros if dim is None else zeros[dim]

    # -- other forms -----------------------------------------------------------------------------------------------------

    def host(self) -> np.ndarray:
        """The places as a NumPy array, all of them inside the shape."""
        array = self._places._host_array()
        if not self._inside:
            check_inside(array, self._dims)
            self._inside = True
        return array

    def flat(self, dims: tuple | None = None) -> Tensor:
        """Each place as one number, counted over some sparse dimensions (all of them)."""
        if not self._inside:
            self.host()
        dims = tuple(range(self.sparse_dim())) if dims is None else dims
        total, step = None, 1
        for d in reversed(dims):
            part = self._places[d] if step == 1 else self._places[d] * step
            total = part if total is None else total + part
            step *= self._dims[d]
        return self._places.new_zeros(self._nnz()) if total is None else total

    def coalesce(self) -> Coo:
        """In order, entries of one place added up."""
        if self._unique:
            return self
        return gathered(self.host(), self._entries, self._dims, "Coalesce")

    def to_dense(self, dtype: dt.dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
        n = self.sparse_dim()
        entries = self._entries if dtype is None else self._entries.to(dtype)
        made = added(math.prod(self._dims[:n]), self.flat(), entries)
        return named(made.reshape(self._dims), "ToDense")

    # -- in place ----------------------------------------------------------------------------------------------------------

    def adopt(self, other: Coo) -> Coo:
        """Become `other`: what in-place operations do."""
        if mode.enabled and self._entries._edge.__class__ is AccumulateGrad:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        entries = other._entries if other.dtype is self.dtype else other._entries.to(self.dtype)
        if other._places is self._places and entries.shape == self._entries.shape and other._dims == self._dims:  # others may hold these values
            self._whole = None
            self._entries.copy_(entries)
            return self
        self._whole = None
        self._places, self._entries, self._dims, self._unique, self._inside = other._places, entries, other._dims, other._unique, other._inside
        return self

    def detach_(self) -> Coo:
        self._whole = None
        self._entries = self._entries.detach()
        return self

    def sparse_resize_(self, size: tuple, sparse_dim: int, dense_dim: int) -> Coo:
        return self._resized(size, sparse_dim, dense_dim, False)

    def sparse_resize_and_clear_(self, size: tuple, sparse_dim: int, dense_dim: int) -> Coo:
        return self._resized(size, sparse_dim, dense_dim, True)

    def resize_as_sparse_(self, the_template: Tensor) -> Coo:
        if not isinstance(the_template, Coo):
            self.refuse("resize_as_sparse_")
        if tuple(the_template.shape) == self._dims and the_template.sparse_dim() == self.sparse_dim():
            return self
        return self._resized(tuple(the_template.shape), the_template.sparse_dim(), the_template.dense_dim(), False)

    def resize_as_(self, the_template: Tensor, *, memory_format: Any = None) -> Coo:
        if memory_format is not None:
            raise RuntimeError(f"Unsupported memory format for sparse tensor resize_as_ :{memory_format.name.removesuffix('_format').title().replace('_', '')}")
        if self.requires_grad and mode.enabled:
            raise RuntimeError("cannot resize variables that require grad")
        if not isinstance(the_template, Coo):
            self.refuse("resize_")
        return self.resize_as_sparse_(the_template)

    def _resized(self, size: tuple, sparse_dim: int, dense_dim: int, clear: bool) -> Coo:
        if not isinstance(size, (tuple, list)):
            raise TypeError(f"sparse_resize_(): argument 'size' (position 1) must be tuple of ints, not {class_name(size)}")
        if self.requires_grad and mode.enabled:
            raise RuntimeError("sparse_resize_: cannot resize a tensor that requires grad")
        if len(size) != sparse_dim + dense_dim:
            raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = "
                               f"{dense_dim}")
        if clear or not self._nnz():
            return self.adopt(empty(size, sparse_dim, self._entries))
        n = self.sparse_dim()
        for kind, had, have, before, after in (("sparse", n, sparse_dim, self._dims[:n], size[:sparse_dim]),
                                               ("dense", self.dense_dim(), dense_dim, self._dims[n:], size[sparse_dim:])):
            if had != have:
                raise RuntimeError(f"changing the number of {kind} dimensions (from {had} to {have}) on a non-empty sparse tensor is not supported.")
            if any(a < b for a, b in zip(after, before)):
                raise RuntimeError(f"shrinking the size of {kind} dimensions (from {list(before)} to {list(after)}) on a non-empty sparse tensor is not "
                                   "supported.")
        entries = self._entries
        if tuple(size[sparse_dim:]) != entries.shape[1:]:
            wide = entries.new_zeros((entries.shape[0], *size[sparse_dim:]))
            wide[tuple(slice(n) for n in entries.shape)] = entries
            entries = wide
        return self.adopt(coo(self._places, entries, tuple(size), self._unique, self._inside))

    def parts(self) -> tuple:
        """What a checkpoint keeps."""
        return self._places, self._entries.detach(), self.shape, self._unique

    def __reduce_ex__(self, protocol: int) -> tuple:
        return self.apart(self._entries.detach(), self.requires_grad)

    def apart(self, entries: Tensor, requires_grad: bool) -> tuple:
        """A function, and its arguments, that make a tensor like this one, of other values."""
        return rebuilt, (self._places, entries, self._dims, self._unique, requires_grad)


def place_numbers(places: np.ndarray, dims: tuple) -> np.ndarray:
    """Each place as one number: all alike where there are no sparse dimensions."""
    return np.ravel_multi_index(tuple(places), dims[:len(places)]) if places.size else np.zeros(places.shape[1], np.int64)


def coo(places: Tensor, entries: Tensor, dims: tuple, unique: bool = False, inside: bool = False) -> Coo:
    made = _new(Coo)
    made._places, made._entries, made._dims, made._unique, made._inside = places, entries, tuple(dims), unique or places.shape[1] < 2, inside
    return made


def rebuilt(places: Tensor, entries: Tensor, dims: tuple, unique: bool, requires_grad: bool) -> Coo:
    made = coo(places, entries, dims, unique)
    return made.requires_grad_() if requires_grad else made


def empty(dims: tuple, sparse_dim: int, like: Tensor, dtype: dt.dtype | None = None, device: Any = None) -> Coo:
    """No entries."""
    entries = like.new_zeros((0, *dims[sparse_dim:]), dtype=dtype, device=device)
    return coo(entries.new_zeros((sparse_dim, 0), dtype=dt.int64), entries, tuple(dims), len(dims) > 0, True)


def added(n: int, index: Tensor, entries: Tensor) -> Tensor:
    """n rows of zeros with entries added at index."""
    if entries.dtype is dt.bool_:
        return added(n, index, entries.to(dt.uint8)) != 0
    # one after another, each sum rounded; index_add would add 16-bit floats in 32 bits
    return entries.new_zeros((n, *entries.shape[1:])).index_put((index,), entries, accumulate=True)


def gathered(places: np.ndarray, entries: Tensor, dims: tuple, name: str) -> Coo:
    """The coalesced tensor of entries at places, which the host knows."""
    sizes = dims[:len(places)]
    numbers = np.ravel_multi_index(tuple(places), sizes) if len(places) and places.size else np.zeros(places.shape[1], np.int64)
    found, inverse = np.unique(numbers, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    if len(found) < len(numbers):
        entries = added(len(found), on_device(inverse.reshape(-1), entries), entries)
    elif (order != np.arange(len(order))).any():
        entries = entries.index_select(0, on_device(order, entries))
    else:
        entries = entries.clone()  # a tensor of its own, whatever is written into it
    unique = np.stack(np.unravel_index(found, sizes)) if len(places) and found.size else np.zeros((len(places), len(found)))
    return coo(on_device(unique.astype(np.int64), entries), named(entries, name), dims, True, True)


def from_dense(t: Tensor, sparse_dim: int | None = None, block: tuple | None = None) -> Coo:
    """The elements of a strided tensor that are not zero, or those in blocks that are not zero."""
    n = t.ndim if sparse_dim is None else sparse_dim
    if not 0 <= n <= t.ndim or (n == 0 and t.ndim):
        raise RuntimeError(f"sparse_dim argument must be in >={min(1, t.ndim)} and <={t.ndim}, but got {n}")
    host = t._host_array() != 0
    where = host.any(tuple(range(n, t.ndim)))
    if block:
        tiles = where.reshape(*where.shape[:-2], where.shape[-2] // block[0], block[0], where.shape[-1] // block[1], block[1])
        where = np.broadcast_to(tiles.any((-3, -1), keepdims=True), tiles.shape).reshape(where.shape)
    flat = np.flatnonzero(where)
    places = np.stack(np.unravel_index(flat, t.shape[:n])) if n else np.zeros((0, len(flat)))
    entries = t.reshape(math.prod(t.shape[:n]), *t.shape[n:]).index_select(0, on_device(flat, t))
    made = coo(on_device(places.astype(np.int64), t), named(entries, "ToSparse"), tuple(t.shape), True, True)
    return made.made_of(t)


def joined(parts: list[Coo], places: np.ndarray | Tensor, dims: tuple, name: str) -> Coo:
    """The entries of several tensors one after another."""
    entries = cat([p._entries for p in parts])
    return coo(on_device(places, entries) if isinstance(places, np.ndarray) else places, named(entries, name), dims, False, True)


def define() -> None:
    """Once the sparse forms are known."""
    finish(Coo)
