"""Compressed rows or columns (sparse_csr, sparse_csc): `pointers[r]` to `pointers[r + 1]` are the entries of row (column) r."""
from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .._arguments import as_size
from .._core import dtype as dt
from .._core.grad_mode import mode
from .._tensor import Tensor, _new
from .._valueless import finish
from .coo import Coo, coo
from .tensor import SparseTensor, named, on_device

_PLAIN = {"crow_indices": ("sparse_csr", "_pointers", "row"), "col_indices": ("sparse_csr", "_others", "row"),
          "ccol_indices": ("sparse_csc", "_pointers", "column"), "row_indices": ("sparse_csc", "_others", "column")}


class Compressed(SparseTensor):
    """A matrix, perhaps with dense dimensions after its two."""

    _pointers: Tensor
    _others: Tensor
    _expanded: Tensor | None = None  # the places of the entries as coordinates
    _sorted = False
    backend = "SparseCsr"
    axis = 0  # the compressed dimension

    def _like(self, entries: Tensor) -> Compressed:
        made = compressed(type(self), self._pointers, self._others, entries, (*self._dims[:2], *entries.shape[1:]))
        made._expanded, made._sorted = self._expanded, self._sorted
        return made

    def _moved(self, device: Any) -> Compressed:
        self._pointers, self._others, self._expanded = self._pointers.to(device), self._others.to(device), None
        return self

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        return self._entries.ndim - 1

    def _nnz(self) -> int:
        return self._others.shape[0]

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
        raise RuntimeError("Sparse CSR tensors do not have strides")

    def is_contiguous(self, memory_format: Any = None) -> NoReturn:
        raise RuntimeError("Tensors of type SparseCsrTensorImpl do not have is_contiguous")

    # -- other forms -----------------------------------------------------------------------------------------------------

    def coordinates(self, name: str = "ToSparse") -> Coo:
        """As a sparse_coo tensor."""
        if self._expanded is None:
            n = self._dims[self.axis]
            counts = np.diff(self._pointers._host_array().astype(np.int64))
            others = self._others._host_array().astype(np.int64)
            if len(counts) != n or (counts < 0).any() or counts.sum() != len(others):
                raise RuntimeError("the compressed indices do not fit the shape and the number of entries")
            major = np.repeat(np.arange(n), counts)
            places = np.stack([others, major] if self.axis else [major, others])
            numbers = places[0] * self._dims[1] + places[1]
            self._sorted = bool((numbers[1:] > numbers[:-1]).all())
            self._expanded = on_device(places, self._entries)
        return coo(self._expanded, named(self._entries, name), self._dims, self._sorted)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:
        if layout is not None and layout.name in ("sparse_csr", "sparse_csc"):
            return self.to_sparse_csr() if layout.name == "sparse_csr" else self.to_sparse_csc()
        if layout is not None and layout.name != "sparse_coo":
            self.refuse("to_sparse")
        return self.coordinates()

    def to_sparse_coo(self) -> Tensor:
        return self.coordinates()

    def to_sparse_csr(self, dense_dim: int | None = None) -> Compressed:
        return self if self.axis == 0 else compress(self.coordinates(), 0)

    def to_sparse_csc(self, dense_dim: int | None = None) -> Compressed:
        return self if self.axis == 1 else compress(self.coordinates(), 1)

    def to_dense(self, dtype: dt.dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
        return self.coordinates().to_dense(dtype)

    def transposed(self) -> Compressed:
        """The matrix's transpose: the same numbers, read as the other layout."""
        made = compressed(Csr if self.axis else Csc, self._pointers, self._others, named(self._entries, "Transpose"),
                          (self._dims[1], self._dims[0], *self._dims[2:]))
        return made

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
        """Rows come and go at the end, columns come: the entries stay."""
        dims = as_size(*size)
        if len(dims) != len(self._dims):
            raise RuntimeError(f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(dims)}")
        axis, other = self.axis, 1 - self.axis
        if dims[other] < self._dims[other]:
            raise RuntimeError("torch.resize_: Resizing columns of sparse CSR tensors to a smaller value is not supported. The original number of columns is "
                               f"{self._dims[other]} while the requested new number of columns is {dims[other]}.")
        if self.requires_grad and mode.enabled:
            raise RuntimeError("cannot resize variables that require grad")
        pointers = self._pointers._host_array()
        kept = np.full(dims[axis] + 1, pointers[-1], pointers.dtype)
        kept[:min(len(pointers), len(kept))] = pointers[:len(kept)]
        kept[-1] = pointers[-1]
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


def _part(name: str) -> Any:
    layout, attribute, word = _PLAIN[name]

    def get(self):
        if self.layout_name != layout:
            raise RuntimeError(f"{name} expected sparse {word} compressed tensor layout but got {self.class_name}")
        return getattr(self, attribute)
    get.__name__ = name
    return get


for _name in _PLAIN:
    setattr(Compressed, _name, _part(_name))


def compressed(cls: type, pointers: Tensor, others: Tensor, entries: Tensor, dims: tuple) -> Compressed:
    made = _new(cls)
    made._pointers, made._others, made._entries, made._dims = pointers, others, entries, tuple(dims)
    return made


def rebuilt(layout: str, pointers: Tensor, others: Tensor, entries: Tensor, dims: tuple, requires_grad: bool) -> Compressed:
    made = compressed(Csc if layout == "sparse_csc" else Csr, pointers, others, entries, dims)
    return made.requires_grad_() if requires_grad else made


def compress(t: Coo, axis: int, name: str | None = None) -> Compressed:
    """A sparse_coo matrix by rows (0) or columns (1)."""
    if t.sparse_dim() != 2:
        raise RuntimeError(f"to_sparse_cs{'rc'[axis]}: conversion of a tensor with {t.sparse_dim()} sparse dimensions is not supported: only of matrices")
    whole, t = t.whole(), t.coalesce()
    places = t.host()
    entries = t._entries
    if axis:
        order = np.argsort(places[1], kind="stable")
        places = places[:, order]
        entries = entries.index_select(0, on_device(order, entries))
    pointers = np.searchsorted(places[axis], np.arange(t._dims[axis] + 1))
    made = compressed((Csr, Csc)[axis], on_device(pointers.astype(np.int64), entries), on_device(places[1 - axis], entries),
                      named(entries, name or ("ToSparseCsr", "ToSparseCsc")[axis]), t._dims)
    return made.made_of(whole)


def define() -> None:
    """Once the sparse forms are known."""
    finish(Csr)
    finish(Csc)
