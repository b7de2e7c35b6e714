"""From one layout to another: which conversions there are, and torch's words for those that there are not."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..ops.creation import LAYOUT_NAMES
from .compressed import LAYOUTS, Compressed, compress
from .coo import Coo, from_dense

_BLOCKED = ("sparse_bsr", "sparse_bsc")


def convert(t: Tensor, to: str, blocksize: Any, dense_dim: int | None, caller: str) -> Tensor:
    """A tensor in layout `to`; `caller` is the function that was called."""
    source = t.layout.name
    name = caller if source == to else _PREFIXES.get(source, "sparse_compressed_") + caller
    if source == "sparse_coo":
        name = name.removeprefix("sparse_") if caller != "to_sparse" and source != to else name
    block = _checked(t, source, to, blocksize, dense_dim, name)
    if source == to:
        return t
    if to == "strided":
        return t.to_dense()
    if to == "sparse_coo":
        return t.coordinates() if isinstance(t, Compressed) else from_dense(t, None if dense_dim is None else t.ndim - dense_dim)
    if source == "strided":
        t = from_dense(t, t.ndim - (dense_dim or 0), block)
    if isinstance(t, Compressed):
        return compress(t.coordinates(), LAYOUTS[to], block=block, kind=t._others.dtype)
    return compress(t, LAYOUTS[to], block=block)


_PREFIXES = {"strided": "dense_", "sparse_coo": "sparse_coo_"}


def _checked(t: Tensor, source: str, to: str, blocksize: Any, dense_dim: int | None, name: str) -> tuple | None:
    """The size of blocks, where the layout has some. RuntimeError where there is no such conversion."""
    route = f"{name}: conversion from {LAYOUT_NAMES[source]} to {LAYOUT_NAMES[to]}"
    if source == "sparse_coo" and to in LAYOUTS and t.sparse_dim() != 2:
        raise RuntimeError(f"{route} for input tensors with sparse_dim()!=2 is not supported")
    if (blocksize is None) == (to in _BLOCKED):
        raise RuntimeError(f"{route} with{'out' if blocksize is None else ''} blocksize argument given is not supported")
    if dense_dim is not None and source != "strided":
        raise RuntimeError(f"{route} with dense_dim argument given is not supported")
    if blocksize is None and dense_dim is not None and not 0 <= dense_dim <= t.ndim - (2 if to in LAYOUTS else 1):
        raise RuntimeError(f"{name}: dense_dim argument must be in [0,{t.ndim - 2}] range, but {dense_dim} is given")
    if to in LAYOUTS and not 2 <= t.ndim - (dense_dim or 0) <= t.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-t.ndim}, {t.ndim - 1}], but got {-2 - (dense_dim or 0)})")
    if blocksize is None:
        if to in LAYOUTS and source in _BLOCKED:
            raise RuntimeError(f"sparse_compressed_to_{to}: expected SparseCsr or SparseCsc layout but got {LAYOUT_NAMES[source]}")
        block = None
    else:
        block = _block(t, source, blocksize, dense_dim, name, route)
    if source == "strided" and to in LAYOUTS and 0 in t.shape[:t.ndim - (dense_dim or 0) - 2]:
        raise RuntimeError(f"to_{to}: Expected product of batch dimensions to be non-zero.")
    return block


def _block(t: Tensor, source: str, blocksize: Any, dense_dim: int | None, name: str, route: str) -> tuple:
    block = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(blocksize)
    if len(block) != 2:
        raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got {len(block)}")
    if min(block) <= 0:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got {list(block)}")
    if source in _BLOCKED:
        if block != t.block:
            raise RuntimeError(f"{route} with blocksize changed from {list(t.block)} to {list(block)} is not supported")
        return block
    if isinstance(t, Compressed) and t.batch_dim:
        raise RuntimeError(f"{route} for batched inputs is not supported")
    n = t.ndim - (dense_dim or 0) if source == "strided" else 2
    rows, columns = t.shape[n - 2:n]
    if rows % block[0] or columns % block[1]:
        raise RuntimeError(f"{name}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize ({block[0]},{block[1]})")
    return block


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:
    """The elements that are not zero, as a sparse_coo tensor, or of another `layout`."""
    if sparse_dim is None:
        return convert(self, "sparse_coo" if layout is None else layout.name, blocksize, dense_dim, "to_sparse")
    if layout is not None or blocksize is not None or dense_dim is not None:
        raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
    if isinstance(self, Compressed):
        if sparse_dim != 2:
            raise RuntimeError(f"sparse_compressed_to_sparse: conversion from {self.class_name} to Sparse with sparse_dim argument !=2 is not supported")
        return self.coordinates()
    if not isinstance(self, Coo):
        return from_dense(self, sparse_dim)
    if sparse_dim != self.sparse_dim():
        raise RuntimeError("to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported")
    return self


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Matrices by compressed rows."""
    return convert(self, "sparse_csr", None, dense_dim, "to_sparse_csr")


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Matrices by compressed columns."""
    return convert(self, "sparse_csc", None, dense_dim, "to_sparse_csc")


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Matrices by compressed rows of blocks."""
    return convert(self, "sparse_bsr", blocksize, dense_dim, "to_sparse_bsr")


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Matrices by compressed columns of blocks."""
    return convert(self, "sparse_bsc", blocksize, dense_dim, "to_sparse_bsc")


for _cls in (Coo, Compressed):
    for _f in (to_sparse, to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc):
        setattr(_cls, _f.__name__, _f)
    _cls.to_sparse_coo = to_sparse
