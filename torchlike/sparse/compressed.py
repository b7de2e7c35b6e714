"""Compressed rows or columns, of elements (sparse_csr, sparse_csc) or of blocks (sparse_bsr, sparse_bsc), of one matrix or of a batch.

`pointers[r]` to `pointers[r + 1]` are the entries of row (column) r.
"""
from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from .._arguments import as_size
from .._core import dtype as dt
from .._core.grad_mode import mode
from .._tensor import Tensor, _new
from .._valueless import finish
from .coo import Coo, added, coo
from .tensor import SparseTensor, named, on_device

_PLAIN = {"crow_indices": ("_pointers", 0, "row"), "col_indices": ("_others", 0, "row"), "ccol_indices": ("_pointers", 1, "column"),
          "row_indices": ("_others", 1, "column")}


class Compressed(SparseTensor):
    """A matrix, perhaps with batch dimensions before its two and dense dimensions after them.

    Pointers are (*batch, lines + 1), others (*batch, entries), values (*batch, entries, *block, *dense).
    """

    _pointers: Tensor
    _others: Tensor
    _expanded: Tensor | None = None  # the places of the entries as coordinates
    _sorted = False
    backend = "SparseCsr"
    index_names = ("_pointers", "_others")
    axis = 0  # the compressed dimension
    blocked = False  # entries are blocks of elements

    @property
    def batch_dim(self) -> int:
        """How many dimensions the batch has."""
        return self._pointers.ndim - 1

    @property
    def _first_dense(self) -> int:
        """The first dense dimension of the values."""
        return self.batch_dim + (3 if self.blocked else 1)

    @property
    def block(self) -> tuple | None:
        """The shape of an entry that is a block."""
        return tuple(self._entries.shape[self.batch_dim + 1:self._first_dense]) if self.blocked else None

    def _like(self, entries: Tensor) -> Compressed:
        made = compressed(type(self), self._pointers, self._others, entries, (*self._dims[:self.batch_dim + 2], *entries.shape[self._first_dense:]))
        made._expanded, made._sorted = self._expanded, self._sorted
        return made

    def _moved(self, device: Any) -> Compressed:
        self._pointers, self._others, self._expanded = self._pointers.to(device), self._others.to(device), None
        return self

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        return self._entries.ndim - self._first_dense

    def _nnz(self) -> int:
        return self._others.shape[-1]

    def values(self) -> Tensor:
        if self._entries._edge is None or not mode.enabled:
            return self._entries.detach()
        return named(self._entries, "Values")

    def _indices(self) -> NoReturn:
        self.refuse("_indices")

    def _values(self) -> NoReturn:
        self.refuse("_values")

    def _not_coo(self, name: str) -> NoReturn:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {self.class_name}")

    def indices(self) -> NoReturn:
        self._not_coo("indices")

    def coalesce(self) -> NoReturn:
        self._not_coo("coalesce")

    def is_coalesced(self) -> NoReturn:
        self._not_coo("is_coalesced")

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if dtype is None:
            raise RuntimeError(f"Unimplemented backend {self.backend}{self.device.type.upper()}")
        return super().type(dtype, non_blocking, **kwargs)

    def stride(self, dim: int | None = None) -> NoReturn:
        raise RuntimeError(f"Sparse {self.layout_name[7:].upper()} tensors do not have strides")

    def is_contiguous(self, memory_format: Any = None) -> NoReturn:
        kind = "Sparse BSR tensors" if self.layout_name == "sparse_bsr" else "Sparse BSC tensors" if self.blocked else "Tensors of type SparseCsrTensorImpl"
        raise RuntimeError(f"{kind} do not have is_contiguous")

    # -- other forms -----------------------------------------------------------------------------------------------------

    def coordinates(self, name: str = "ToSparse") -> Coo:
        """As a sparse_coo tensor, of the elements of blocks; batch dimensions become sparse ones."""
        if self._expanded is None:
            places, sizes = self._elements(), self._dims[:self.batch_dim + 2]
            numbers = np.ravel_multi_index(tuple(places), sizes) if places.size else np.zeros(0, np.int64)
            self._sorted = not self.axis and bool((numbers[1:] > numbers[:-1]).all())
            self._expanded = on_device(places, self._entries)
        entries = self._entries
        if self.batch_dim or self.blocked:
            entries = entries.reshape(self._expanded.shape[1], *entries.shape[self._first_dense:])
        return coo(self._expanded, named(entries, name), self._dims, self._sorted)

    def _elements(self) -> np.ndarray:
        """The places of all elements, in the order of the values."""
        b, (rows, columns) = self.batch_dim, self.block or (1, 1)
        batches, lines, free = math.prod(self._dims[:b]), self._dims[b + self.axis], self._dims[b + 1 - self.axis]
        high, wide = (columns, rows) if self.axis else (rows, columns)
        others = self._others._host_array().astype(np.int64).reshape(batches, -1)
        counts = np.diff(self._pointers._host_array().astype(np.int64).reshape(batches, -1), axis=1)
        if counts.shape[1] * high != lines or (counts < 0).any() or (counts.sum(1) != others.shape[1]).any():
            raise RuntimeError("the compressed indices do not fit the shape and the number of entries")
        if others.size and not (others.min() >= 0 and others.max() * wide < free):
            raise RuntimeError(f"the plain indices do not fit the shape: {'rows' if self.axis else 'columns'} {int(others.min())} to {int(others.max())}")
        major = np.repeat(np.tile(np.arange(lines // high), batches), counts.reshape(-1))
        row, column = (others.reshape(-1), major) if self.axis else (major, others.reshape(-1))
        batch = np.repeat(np.arange(batches), others.shape[1])
        if self.blocked:
            row, column = (x.reshape(-1) for x in np.broadcast_arrays(row[:, None, None] * rows + np.arange(rows)[:, None],
                                                                      column[:, None, None] * columns + np.arange(columns)))
            batch = np.repeat(batch, rows * columns)
        return np.stack([*(np.unravel_index(batch, self._dims[:b]) if b else ()), row, column]).astype(np.int64)

    def to_dense(self, dtype: dt.dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
        return self.coordinates().to_dense(dtype)

    def transposed(self) -> Compressed:
        """The matrices' transposes: the same numbers, read as the other layout; blocks are transposed themselves."""
        b, entries = self.batch_dim, self._entries
        entries = entries.transpose(b + 1, b + 2) if self.blocked else entries
        return compressed(LAYOUTS[self.layout_name[:-1] + "cr"[self.axis]], self._pointers, self._others, named(entries, "Transpose"),
                          (*self._dims[:b], self._dims[b + 1], self._dims[b], *self._dims[b + 2:]))

    def part(self, d: int, index: int, name: str) -> Compressed:
        """What is at an index of a batch dimension or of a dense one."""
        b, dims = self.batch_dim, (*self._dims[:d], *self._dims[d + 1:])
        if d >= b + 2:
            return compressed(type(self), self._pointers, self._others, named(self._entries.select(d - b - 2 + self._first_dense, index), name), dims)
        return compressed(type(self), self._pointers.select(d, index), self._others.select(d, index), named(self._entries.select(d, index), name), dims)

    def batch_exchanged(self, a: int, b: int) -> Compressed:
        """Two batch dimensions exchanged."""
        dims = list(self._dims)
        dims[a], dims[b] = dims[b], dims[a]
        return compressed(type(self), *(x.transpose(a, b) for x in (self._pointers, self._others)), named(self._entries.transpose(a, b), "Transpose"), dims)

    def emptied(self, dtype: dt.dtype | None = None, device: Any = None) -> Compressed:
        """One of the same shape without entries."""
        b, v = self.batch_dim, self._entries
        return compressed(type(self), self._pointers.new_zeros(self._pointers.shape, device=device), self._others.new_zeros((*self._dims[:b], 0), device=device),
                          v.new_zeros((*v.shape[:b], 0, *v.shape[b + 1:]), dtype=dtype, device=device), self._dims)

    def adopt(self, other: Compressed) -> Compressed:
        if mode.enabled and self.is_leaf and self.requires_grad:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if other._others is self._others and other._pointers is self._pointers and other.dtype is self.dtype:
            self._entries.copy_(other._entries)
            return self
        self._whole = None
        self._pointers, self._others, self._entries, self._dims = other._pointers, other._others, other._entries.to(self.dtype), other._dims
        self._expanded, self._sorted = other._expanded, other._sorted
        return self

    def resize_(self, *size: Any, memory_format: Any = None) -> Compressed:
        """Rows come and go at the end, columns come: the first entries stay, as many as there is room for."""
        dims = as_size(*size)
        if len(dims) != len(self._dims):
            raise RuntimeError(f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(dims)}")
        if dims == self._dims:
            return self
        if self.blocked or self.batch_dim:
            self.refuse("resize_")
        axis, other = self.axis, 1 - self.axis
        if dims[other] < self._dims[other]:
            raise RuntimeError("torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original number of columns is "
                               f"{self._dims[other]} while the requested new number of columns is {dims[other]}.")
        if self.requires_grad and mode.enabled:
            raise RuntimeError("cannot resize variables that require grad")
        pointers = self._pointers._host_array()
        count = min(int(pointers[-1]), math.prod(dims))
        kept = np.full(dims[axis] + 1, count, pointers.dtype)
        kept[:min(len(pointers), len(kept))] = pointers[:len(kept)]
        kept[-1] = count
        if count < pointers[-1]:
            self._others, self._entries = self._others[:count].clone(), self._entries[:count].clone()
        self._pointers, self._dims, self._expanded, self._whole = on_device(kept, self._entries), tuple(dims), None, None
        return self

    def resize_as_(self, the_template: Tensor, *, memory_format: Any = None) -> Compressed:
        return self.resize_(tuple(the_template.shape))

    def resize_as_sparse_(self, the_template: Tensor) -> Compressed:
        if type(the_template) is not type(self):
            self.refuse("resize_as_sparse_")
        return self.resize_(tuple(the_template.shape))

    def detach_(self) -> Compressed:
        self._whole = None
        self._entries = self._entries.detach()
        return self

    def parts(self) -> tuple:
        """What a checkpoint keeps."""
        return self._pointers, self._others, self._entries.detach(), self.shape

    def __reduce_ex__(self, protocol: int) -> tuple:
        return self.apart(self._entries.detach(), self.requires_grad)

    def apart(self, entries: Tensor, requires_grad: bool) -> tuple:
        """A function, and its arguments, that make a tensor like this one, of other values."""
        return rebuilt, (self.layout_name, self._pointers, self._others, entries, self._dims, requires_grad)


class Csr(Compressed):
    layout_name = "sparse_csr"


class Csc(Compressed):
    layout_name = "sparse_csc"
    axis = 1


class Bsr(Compressed):
    layout_name = "sparse_bsr"
    blocked = True


class Bsc(Compressed):
    layout_name = "sparse_bsc"
    axis, blocked = 1, True


LAYOUTS = {cls.layout_name: cls for cls in (Csr, Csc, Bsr, Bsc)}


def _part(name: str) -> Any:
    attribute, axis, word = _PLAIN[name]

    def get(self):
        if self.axis != axis:
            raise RuntimeError(f"{name} expected sparse {word} compressed tensor layout but got {self.class_name}")
        return getattr(self, attribute)
    get.__name__ = name
    return get


for _name in _PLAIN:
    setattr(Compressed, _name, _part(_name))


def empty_compressed(like: Compressed, size: tuple, dtype: dt.dtype | None = None, device: Any = None) -> Compressed:
    """One of this size without entries, of elements by rows or columns as `like`."""
    *batch, rows, columns = size
    pointers = like._pointers.new_zeros((*batch, (columns if like.axis else rows) + 1), device=device)
    return compressed(type(like), pointers, like._others.new_zeros((*batch, 0), device=device), like._entries.new_zeros((*batch, 0), dtype=dtype, device=device), size)


def compressed(cls: type, pointers: Tensor, others: Tensor, entries: Tensor, dims: tuple) -> Compressed:
    made = _new(cls)
    made._pointers, made._others, made._entries, made._dims = pointers, others, entries, tuple(dims)
    return made


def rebuilt(layout: str, pointers: Tensor, others: Tensor, entries: Tensor, dims: tuple, requires_grad: bool) -> Compressed:
    made = compressed(LAYOUTS[layout], pointers, others, entries, dims)
    return made.requires_grad_() if requires_grad else made


def compress(t: Coo, cls: type, name: str | None = None, block: tuple | None = None, kind: dt.dtype = dt.int64) -> Compressed:
    """A sparse_coo tensor by rows or columns, of elements or blocks: its last two sparse dimensions are the matrices'. `kind` is that of the indices."""
    whole, t = t.whole(), t.coalesce()
    b, places, entries = t.sparse_dim() - 2, t.host(), t._entries
    rows, columns = block or (1, 1)
    cells = np.stack([places[b] // rows, places[b + 1] // columns])
    sizes = t._dims[b] // rows, t._dims[b + 1] // columns
    lines, free = sizes[cls.axis], sizes[1 - cls.axis]
    batches = math.prod(t._dims[:b])
    batch = np.ravel_multi_index(tuple(places[:b]), t._dims[:b]) if b and places.size else np.zeros(places.shape[1], np.int64)
    line = batch * lines + cells[cls.axis]
    found, inverse = np.unique(line * free + cells[1 - cls.axis], return_inverse=True)
    line, others = found // max(free, 1), found % max(free, 1)
    counts = np.bincount(line, minlength=batches * lines).reshape(batches, lines)
    if (counts.sum(1) * batches != len(found)).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    if block:
        inside = (places[b] % rows) * columns + places[b + 1] % columns
        entries = added(len(found) * rows * columns, on_device(inverse.reshape(-1) * rows * columns + inside, entries), entries)
    elif (inverse.reshape(-1) != np.arange(len(found))).any():
        entries = entries.index_select(0, on_device(np.argsort(inverse.reshape(-1), kind="stable"), entries))
    pointers = np.concatenate([np.zeros((batches, 1), np.int64), counts.cumsum(1)], 1).reshape(*t._dims[:b], lines + 1)
    n = len(found) // max(batches, 1)
    if block or b:
        entries = entries.reshape(*t._dims[:b], n, *(block or ()), *entries.shape[1:])
    made = compressed(cls, *(on_device(x.astype(kind.np), entries) for x in (pointers, others.reshape(*t._dims[:b], n))),
                      named(entries, name or "To" + cls.layout_name.title().replace("_", "")), t._dims)
    return made.made_of(whole)


def define() -> None:
    """Once the sparse forms are known."""
    for cls in LAYOUTS.values():
        finish(cls)
